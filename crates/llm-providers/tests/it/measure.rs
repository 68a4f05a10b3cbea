//! temp
use std::time::Instant;
use crate::common::*;
use crate::scripted_server::{Reply, ScriptedServer};
#[tokio::test]
async fn measure() {
    let big = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n".repeat(8000) + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let n = big.len();
    let server = ScriptedServer::start(vec![Reply::text("x"), Reply::text("x"), Reply::raw(big.clone()), Reply::raw(big)]).await;
    let t = Instant::now();
    let c = client(&server.base_url(), "{provider: vllm}");
    println!("client {:?}", t.elapsed());
    let (o, _) = call(&c, &question()).await; o.unwrap();
    println!("first request arrived {:?}", server.requests()[0].at - t);
    let t = Instant::now(); call(&c, &question()).await.0.unwrap(); println!("second call {:?}", t.elapsed());
    for _ in 0..2 { let t = Instant::now(); let o = call(&c, &question()).await; println!("{:?}", o.0.map(|o| o.retries)); println!("{} bytes {:?}", n, t.elapsed()); }
    let t = Instant::now();
    let env = llm_providers::Environment::from([("FATHOM_LOCAL_SERVERS", "vllm=1")]);
    let d = llm_providers::detect(&env, &Default::default()).await; println!("detect {:?} {}", t.elapsed(), d.config.provider);
}
