"""Makes the sample documents of this folder, and what markitdown says of them.

    python3 -m venv venv && venv/bin/pip install 'markitdown[pdf,docx,pptx,xlsx,xls]' python-docx openpyxl \
        python-pptx reportlab odfpy xlwt ebooklib
    venv/bin/python make.py            (soffice on the search path)

All texts are our own. Running it again changes dates inside of the files and nothing of their texts.
"""

import csv
import json
import pathlib
import subprocess
import tempfile
import zipfile

HERE = pathlib.Path(__file__).parent
OUT = HERE / "documents"
EXPECTED = HERE / "markitdown"

INTRO = (
    "Tide mills grind grain with water that the rising sea has left behind a gate. The mill pond fills twice a day, "
    "the gate closes by itself when the tide turns, and the wheel runs until the pond is empty. No miller chose the "
    "hour of his work: the moon did, and it moved by fifty minutes from one day to the next."
)
HISTORY = (
    "The oldest remains that have been dated lie on the shore of a lough in the north, where two mills stood in the "
    "seventh century. Their flume was cut from a single oak, nearly eight metres long, and its rings give the winter "
    "in which the tree was felled. Monks built them, kept accounts of the flour, and complained about eels."
)
POND = (
    "A pond of four hectares holds about sixty thousand cubic metres at spring tide. Half of that is gone before the "
    "head is high enough to turn the wheel, so that five hours of work remain from each tide, and fewer at neaps."
)
GATE = (
    "The gate hangs from its upper edge. The flood pushes it open and the ebb shuts it, and apart from grease it asks "
    "for nothing. Gates were lost to storms in nearly every generation; the accounts speak of oak, iron, and patience."
)
DECLINE = (
    "Steam ended the trade within forty years. Some mills ran on as curiosities, one into the nineteen-fifties, and "
    "a handful were repaired by people who missed the sound. Their flour is sold to visitors in bags of one kilogram."
)
UNICODE = "Naïve façades, Łódź and Đà Nẵng, Ελλάδα, Москва, 東京の水車, café at 20 °C costs 3 € – “quoted” text…"
BULLETS = ["The pond and its bank of clay", "The gate and its hinge", "The wheel pit with two wheels", "The stones above"]
STEPS = ["Close the sluices before high water", "Wait until the ebb has fallen by two metres", "Open the sluice of the first wheel"]
TABLE = [
    ["Mill", "County", "Built", "Head (m)", "Stones"],
    ["Carrow Strand", "Westmark", "1748", "2.4", "3 pairs"],
    ["Ebb House", "Lower Sound", "1803", "1.9", "2 pairs"],
    ["Saltgate", "Westmark", "1691", "3.1", "4 pairs"],
    ["Quillan Creek", "Harbour Isles", "1777", "2.0", "1 pair"],
]
LINK = "https://example.org/tide-mills"


def docx_python():
    import docx

    d = docx.Document()
    d.core_properties.title = "Mills of the tide"
    d.add_heading("Mills of the tide", 0)
    p = d.add_paragraph()
    p.add_run("In short: ").bold = True
    p.add_run(INTRO)
    d.add_heading("History", 1)
    d.add_paragraph(HISTORY)
    d.add_heading("The parts of a mill", 2)
    for text in BULLETS:
        d.add_paragraph(text, style="List Bullet")
    d.add_paragraph("A second level of the list", style="List Bullet 2")
    d.add_heading("A day of work", 2)
    for text in STEPS:
        d.add_paragraph(text, style="List Number")
    p = d.add_paragraph("The survey is at ")
    link(p, LINK, "the survey of tide mills")
    p.add_run(" and was ").italic = True
    p.add_run("never finished").italic = True
    p.add_run(".")
    d.add_heading("Mills that are known", 1)
    t = d.add_table(rows=0, cols=5)
    t.style = "Table Grid"
    for row in TABLE:
        for cell, text in zip(t.add_row().cells, row):
            cell.text = text
    d.add_heading("Merged cells", 2)
    t = d.add_table(rows=3, cols=3)
    t.style = "Table Grid"
    for number, cell in enumerate(c for r in t.rows for c in r.cells):
        cell.text = f"cell {number}"
    t.cell(0, 0).merge(t.cell(0, 1)).text = "wide head"
    t.cell(1, 0).merge(t.cell(2, 0)).text = "tall side"
    d.add_heading("Decline", 1)
    d.add_paragraph(DECLINE)
    d.add_paragraph(UNICODE)
    d.save(OUT / "python-docx.docx")


def link(paragraph, url, text):
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    relation = paragraph.part.relate_to(url, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    element = OxmlElement("w:hyperlink")
    element.set(qn("r:id"), relation)
    run = OxmlElement("w:r")
    inner = OxmlElement("w:t")
    inner.text = text
    run.append(inner)
    element.append(run)
    paragraph._p.append(element)


def html_table(rows):
    head, *body = rows
    cells = lambda row, tag: "".join(f"<{tag}>{text}</{tag}>" for text in row)
    return f"<table border=1><tr>{cells(head, 'th')}</tr>{''.join(f'<tr>{cells(row, chr(116) + chr(100))}</tr>' for row in body)}</table>"


def page(article=True):
    items = "".join(f"<li>{text}</li>" for text in BULLETS)
    steps = "".join(f"<li>{text}</li>" for text in STEPS)
    body = (
        f"<h1>Mills of the tide</h1><p><b>In short:</b> {INTRO}</p><h2>History</h2><p>{HISTORY}</p><p>{POND}</p>"
        f"<h3>The parts of a mill</h3><ul>{items}</ul><h3>A day of work</h3><ol>{steps}</ol>"
        f"<p>{GATE} See <a href=\"{LINK}\">the survey of tide mills</a>.</p>"
        f"<h2>Mills that are known</h2>{html_table(TABLE)}<h2>Decline</h2><p>{DECLINE}</p><p>{UNICODE}</p>"
    )
    frame = f"<article>{body}</article>" if article else body
    return (
        "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Mills of the tide</title>"
        "<style>p { margin: 0 }</style></head><body>"
        f"{frame}<script>console.log('not for reading')</script></body></html>"
    )


def office(source, target, filter_name=None):
    """Lets LibreOffice turn a file into another."""
    with tempfile.TemporaryDirectory() as folder:
        to = target.suffix[1:] + (f":{filter_name}" if filter_name else "")
        subprocess.run(
            ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", to, "--outdir", folder, source],
            check=True, capture_output=True,
        )
        made = pathlib.Path(folder) / (pathlib.Path(source).stem + target.suffix)
        target.write_bytes(made.read_bytes())


def texts_of_office():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "page.html"
        source.write_text(page(article=False), encoding="utf-8")
        odt = pathlib.Path(folder) / "text.odt"
        office_writer(source, odt)
        odt_target = OUT / "libreoffice.odt"
        odt_target.write_bytes(odt.read_bytes())
        office(odt, OUT / "libreoffice.docx", "MS Word 2007 XML")
        office(odt, OUT / "libreoffice.doc", "MS Word 97")
        office(odt, OUT / "libreoffice.rtf", "Rich Text Format")
        office(odt, OUT / "libreoffice.pdf")


def office_writer(source, target):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--infilter=HTML (StarWriter)",
             "--convert-to", "odt:writer8", "--outdir", folder, source],
            check=True, capture_output=True,
        )
        target.write_bytes((pathlib.Path(folder) / (pathlib.Path(source).stem + ".odt")).read_bytes())


def pptx_python():
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[0])
    slide.shapes.title.text = "Mills of the tide"
    slide.placeholders[1].text = "A survey of what is left"
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "The parts of a mill"
    frame = slide.placeholders[1].text_frame
    frame.text = BULLETS[0]
    for text in BULLETS[1:]:
        frame.add_paragraph().text = text
    inner = frame.add_paragraph()
    inner.text = "French burr for wheat, granite for barley"
    inner.level = 1
    slide.notes_slide.notes_text_frame.text = POND
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Mills that are known"
    table = slide.shapes.add_table(len(TABLE), 5, Inches(0.5), Inches(1.5), Inches(9), Inches(3)).table
    for r, row in enumerate(TABLE):
        for c, text in enumerate(row):
            table.cell(r, c).text = text
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Flour by year"
    data = CategoryChartData()
    data.categories = ["1850", "1870", "1890"]
    data.add_series("Tonnes", (410, 260, 35))
    data.add_series("Mills at work", (44, 31, 9))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(2), Inches(8), Inches(4), data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "What steam did"
    box = slide.shapes.add_textbox(Inches(1), Inches(6.2), Inches(8), Inches(1))
    box.text_frame.text = DECLINE
    show.save(OUT / "python-pptx.pptx")
    office(OUT / "python-pptx.pptx", OUT / "libreoffice.odp", "impress8")
    with tempfile.TemporaryDirectory() as folder:
        odp = pathlib.Path(folder) / "show.odp"
        odp.write_bytes((OUT / "libreoffice.odp").read_bytes())
        office(odp, OUT / "libreoffice.pptx", "Impress MS PowerPoint 2007 XML")
        # Half a megabyte of almost nothing, so it is kept packed.
        ppt = pathlib.Path(folder) / "libreoffice.ppt"
        office(odp, ppt, "MS PowerPoint 97")
        with zipfile.ZipFile(OUT / "libreoffice.ppt.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(ppt, "libreoffice.ppt")


SHEET = [row[:2] + [int(row[2]), float(row[3]), row[4]] if number else row for number, row in enumerate(TABLE)]


def xlsx_openpyxl():
    import datetime
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Mills"
    for row in SHEET:
        sheet.append(row)
    tides = book.create_sheet("Tides & times")
    tides.append(["Day", "High water", "Share of pond", "Worked", "Remark"])
    for day, share in ((1, 0.25), (2, 0.375), (3, 0.5)):
        tides.append([datetime.date(2024, 2, 27 + day) if day < 3 else datetime.date(2024, 3, 1), datetime.datetime(2024, 3, day, 6, 30), share, day != 2, "spring | tide" if day == 1 else None])
        tides.cell(day + 1, 3).number_format = "0.0%"
    tides["G10"] = "far away"
    book.create_sheet("Empty")
    notes = book.create_sheet("Notes")
    for text in (INTRO, HISTORY, GATE, UNICODE):
        notes.append([text])
    notes.merge_cells("A6:C6")
    notes["A6"] = "merged over three columns"
    book.save(OUT / "openpyxl.xlsx")
    office(OUT / "openpyxl.xlsx", OUT / "libreoffice.ods", "calc8")
    with tempfile.TemporaryDirectory() as folder:
        ods = pathlib.Path(folder) / "book.ods"
        ods.write_bytes((OUT / "libreoffice.ods").read_bytes())
        office(ods, OUT / "libreoffice.xlsx", "Calc MS Excel 2007 XML")
        office(ods, OUT / "libreoffice.xls", "MS Excel 97")


def xls_xlwt():
    import datetime
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("Mills")
    for r, row in enumerate(SHEET):
        for c, value in enumerate(row):
            sheet.write(r, c, value)
    notes = book.add_sheet("Notes")
    date = xlwt.easyxf(num_format_str="YYYY-MM-DD")
    for r, text in enumerate((INTRO, HISTORY, GATE, UNICODE)):
        notes.write(r, 0, text)
        notes.write(r, 1, datetime.date(2024, 2, 28 + min(r, 1)), date)
        notes.write(r, 2, r % 2 == 0)
    # More text than one record takes, so that it goes over several.
    long = book.add_sheet("Long")
    for r in range(60):
        long.write(r, 0, f"Line {r} of the ledger: {POND if r % 2 else DECLINE}")
    book.save(str(OUT / "xlwt.xls"))


def pdf_reportlab():
    from reportlab.lib import colors
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.pdfgen import canvas
    from reportlab.platypus import BaseDocTemplate, Frame, ListFlowable, ListItem, PageTemplate, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

    styles = getSampleStyleSheet()
    text = lambda words: Paragraph(words, styles["BodyText"])
    story = [Paragraph("Mills of the tide", styles["Title"]), text(f"<b>In short:</b> {INTRO}"), Paragraph("History", styles["Heading1"]), text(HISTORY), text(POND)]
    story += [Paragraph("The parts of a mill", styles["Heading2"]), ListFlowable([ListItem(text(words)) for words in BULLETS], bulletType="bullet")]
    story += [Paragraph("A day of work", styles["Heading2"]), ListFlowable([ListItem(text(words)) for words in STEPS], bulletType="1")]
    story += [text(GATE), Paragraph("Mills that are known", styles["Heading1"])]
    story += [Table(TABLE, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])), Spacer(1, 12), Paragraph("Decline", styles["Heading1"]), text(DECLINE)]
    SimpleDocTemplate(str(OUT / "reportlab.pdf"), pagesize=A4, title="Mills of the tide").build(story)

    columns = BaseDocTemplate(str(OUT / "reportlab-columns.pdf"), pagesize=A4, title="Two columns")
    width = columns.width / 2 - 8
    frames = [Frame(columns.leftMargin + at * (width + 16), columns.bottomMargin + 250, width, columns.height - 250) for at in (0, 1)]
    columns.addPageTemplates([PageTemplate(frames=frames)])
    columns.build([Paragraph("Two columns", styles["Heading1"])] + [text(words) for words in (INTRO, HISTORY, POND, GATE, DECLINE)] * 2)

    scanned = canvas.Canvas(str(OUT / "scanned.pdf"), pagesize=A4)
    for _ in range(2):
        scanned.rect(100, 400, 300, 200, fill=1)
        scanned.showPage()
    scanned.save()

    locked = canvas.Canvas(str(OUT / "locked.pdf"), pagesize=A4, encrypt="a password")
    locked.drawString(100, 700, INTRO[:60])
    locked.save()
    from reportlab.lib.pdfencrypt import StandardEncryption
    owner = canvas.Canvas(str(OUT / "owner-locked.pdf"), pagesize=A4, encrypt=StandardEncryption("", ownerPassword="other", canPrint=0))
    for number, line in enumerate(INTRO.split(". ")):
        owner.drawString(60, 760 - 20 * number, line)
    owner.save()


def epub():
    from ebooklib import epub as books

    book = books.EpubBook()
    book.set_identifier("tide-mills")
    book.set_title("Mills of the tide")
    book.set_language("en")
    book.add_author("The authors of these samples")
    chapters = []
    items = "".join(f"<li>{text}</li>" for text in BULLETS)
    for number, (title, body) in enumerate([("Beginnings", f"<p>{INTRO}</p><p>{HISTORY}</p>"), ("Parts", f"<ul>{items}</ul><p>{GATE}</p>{html_table(TABLE)}"), ("Decline", f"<p>{DECLINE}</p><p>{UNICODE}</p>")]):
        chapter = books.EpubHtml(title=title, file_name=f"chapter {number}.xhtml")
        chapter.content = f"<html><body><h2>{title}</h2>{body}</body></html>"
        book.add_item(chapter)
        chapters.append(chapter)
    book.toc = chapters
    book.add_item(books.EpubNcx())
    book.add_item(books.EpubNav())
    book.spine = ["nav", *chapters]
    books.write_epub(str(OUT / "ebooklib.epub"), book)


def plain():
    (OUT / "page.html").write_text(page(), encoding="utf-8")
    with open(OUT / "mills.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(TABLE + [["A, with comma", 'and "quotes"', "1900", "", "two\nlines"]])
    (OUT / "mills.json").write_text(json.dumps([dict(zip(TABLE[0], row)) for row in TABLE[1:]]), encoding="utf-8")
    (OUT / "notes.txt").write_text("\n\n".join((INTRO, HISTORY, POND, GATE, DECLINE, UNICODE)), encoding="utf-8")
    (OUT / "tides.py").write_text('"""Times of high water."""\n\n\ndef later(minutes):\n    return minutes + 50\n', encoding="utf-8")
    with zipfile.ZipFile(OUT / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("mills.csv", "page.html", "python-docx.docx", "notes.txt"):
            archive.write(OUT / name, f"folder/{name}")


def odt_odfpy():
    from odf import teletype, text as t
    from odf.opendocument import OpenDocumentText
    from odf.style import Style, TextProperties
    from odf.table import Table, TableCell, TableRow

    d = OpenDocumentText()
    bold = Style(name="Strong", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    d.automaticstyles.addElement(bold)
    d.text.addElement(t.H(outlinelevel=1, text="Mills of the tide"))
    p = t.P()
    p.addElement(t.Span(stylename=bold, text="In short: "))
    p.addText(INTRO)
    note = t.Note(noteclass="footnote")
    note.addElement(t.NoteCitation(text="1"))
    body = t.NoteBody()
    body.addElement(t.P(text="Counted by the parish clerk."))
    note.addElement(body)
    p.addElement(note)
    d.text.addElement(p)
    d.text.addElement(t.H(outlinelevel=2, text="Parts"))
    items = t.List()
    for words in BULLETS:
        item = t.ListItem()
        item.addElement(t.P(text=words))
        items.addElement(item)
    d.text.addElement(items)
    table = Table(name="Mills")
    for row in TABLE:
        line = TableRow()
        for words in row:
            cell = TableCell()
            cell.addElement(t.P(text=words))
            line.addElement(cell)
        table.addElement(line)
    d.text.addElement(table)
    p = t.P(text="")
    teletype.addTextToElement(p, "Blanks   and\ttabs stay apart.")
    d.text.addElement(p)
    d.save(OUT / "odfpy.odt")


def expected():
    from markitdown import MarkItDown

    reader = MarkItDown()
    for path in sorted(OUT.iterdir()):
        target = EXPECTED / (path.name + ".md")
        if path.suffix == ".rtf":  # it takes the source for text
            continue
        try:
            text = reader.convert(path).text_content.replace(str(path), path.name)
        except Exception as error:  # formats that it does not read
            print(f"markitdown does not read {path.name}: {type(error).__name__}")
            continue
        if text.strip():
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    EXPECTED.mkdir(exist_ok=True)
    for make in (docx_python, texts_of_office, pptx_python, xlsx_openpyxl, xls_xlwt, pdf_reportlab, epub, odt_odfpy, plain, expected):
        make()
