use super::*;

fn head(build: http::request::Builder) -> Parts {
    build.body(()).unwrap().into_parts().0
}

#[test]
fn what_is_no_call_is_refused_as_others_refuse_it() {
    let names = Names::new("a b");
    let of = |method: &str, path: &str, content: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content);
        kind(&head(request), &names).map_err(|(status, code)| (status.as_u16(), code))
    };
    let grpc = "application/grpc";
    assert_eq!(of("POST", "/a%20b/Tun", grpc), Ok(Kind::Hunk));
    assert_eq!(
        of("POST", "/a%20b/TunMulti", "application/grpc+proto"),
        Ok(Kind::MultiHunk)
    );
    assert_eq!(of("POST", "/a%20b/Tun", "Application/gRPC; x=y"), Ok(Kind::Hunk));
    assert_eq!(of("GET", "/a%20b/Tun", grpc), Err((405, INTERNAL)));
    assert_eq!(of("POST", "/a%20b/Tun", "application/grpcx"), Err((415, INTERNAL)));
    assert_eq!(of("POST", "/a%20b/Tun", "text/plain"), Err((415, INTERNAL)));
    assert_eq!(
        of("POST", "/grpc.health.v1.Health/Check", grpc),
        Err((200, UNIMPLEMENTED))
    );
    let bare = Request::builder().method("POST").uri("/a%20b/Tun");
    assert!(kind(&head(bare), &names).is_err());
}

#[test]
fn answers_that_are_none() {
    let answer = |status: u16, headers: &[(&'static str, &'static str)]| {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in headers {
            head.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        check_head(&head).map_err(|error| error.to_string())
    };
    let grpc = ("content-type", "application/grpc");
    assert_eq!(answer(200, &[grpc]), Ok(()));
    assert_eq!(answer(200, &[grpc, ("grpc-status", "0")]), Ok(()));
    assert!(
        answer(200, &[grpc, ("grpc-status", "12")])
            .unwrap_err()
            .contains("serviceName")
    );
    assert!(
        answer(200, &[grpc, ("grpc-status", "7")])
            .unwrap_err()
            .contains("status 7")
    );
    assert!(answer(200, &[grpc, ("grpc-status", "x")]).is_err());
    assert!(answer(200, &[("content-type", "text/html")]).is_err());
    assert!(answer(502, &[grpc]).unwrap_err().contains("502"));
}
