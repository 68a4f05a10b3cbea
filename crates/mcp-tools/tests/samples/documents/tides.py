"""Times of high water."""


def later(minutes):
    return minutes + 50
