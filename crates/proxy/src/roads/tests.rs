use std::sync::Mutex;

use sealway_v2ray::Address;

use super::*;

/// Outbounds that each need the next one, to the same target or, `onward`, to another one; and what was asked for.
struct Next {
    roads: Arc<Roads>,
    onward: bool,
    spawns: bool,
    asked: Mutex<Vec<(Way, Destination)>>,
}

/// The tag of an outbound.
fn o(at: usize) -> Arc<str> {
    format!("o{at}").into()
}

impl Next {
    fn new(outbounds: usize, onward: bool, spawns: bool) -> Arc<Next> {
        let next = Arc::new(Next {
            roads: Roads::new((0..outbounds).map(|at| format!("o{at}")).collect()),
            onward,
            spawns,
            asked: Mutex::default(),
        });
        let ways: Arc<dyn Ways> = Arc::clone(&next) as _;
        next.roads.set(Arc::downgrade(&ways));
        next
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Ways for Next {
    fn connect<'a>(&'a self, way: &'a Way, to: &'a Destination, _: &'a Caller) -> Pending<'a, Stream> {
        self.asked.lock().unwrap().push((way.clone(), to.clone()));
        let Way::Through(at) = way else {
            return Box::pin(async { self.roads.through(&o(0), to, &NOBODY).await });
        };
        let at = self.roads.tags.iter().position(|tag| **tag == **at).unwrap();
        let (roads, next) = (Arc::clone(&self.roads), o((at + 1) % self.roads.tags.len()));
        let to = match self.onward {
            true => target(to.port + 1),
            false => to.clone(),
        };
        let onwards = inherit(async move { roads.through(&next, &to, &NOBODY).await });
        match self.spawns {
            true => Box::pin(async { tokio::spawn(onwards).await.unwrap() }),
            false => Box::pin(onwards),
        }
    }

    fn associate<'a>(
        &'a self,
        way: &'a Way,
        to: &'a Destination,
        caller: &'a Caller,
    ) -> Pending<'a, Box<dyn PacketEnd>> {
        assert_eq!(to.network, Network::Udp);
        Box::pin(async { Err(self.connect(way, to, caller).await.err().unwrap()) })
    }
}

const NOBODY: Caller = Caller {
    source: None,
    local: None,
    remote: false,
    captured: false,
    neighbour: false,
    is_program: false,
    exempt: None,
    asks_names: false,
};

fn target(port: u16) -> Destination {
    Destination::tcp(Address::parse("192.0.2.1").unwrap(), port)
}

#[tokio::test]
async fn a_way_that_needs_itself_ends_with_an_error_that_names_it() {
    for spawns in [false, true] {
        let next = Next::new(3, false, spawns);
        let error = next.roads.through(&o(1), &target(5), &NOBODY).await.err().unwrap();
        assert_eq!(
            error.to_string(),
            "the way to tcp:192.0.2.1:5 by outbound \"o1\" needs itself, or too many others"
        );
        assert_eq!(next.asked(), 3, "each was asked once");
        let error = next
            .roads
            .packets_through(&o(1), &target(5), &NOBODY)
            .await
            .err()
            .unwrap();
        assert!(matches!(error, Error::Circle { .. }), "{error}");
    }
}

#[tokio::test]
async fn ways_nest_so_deep_and_no_deeper() {
    let next = Next::new(50, true, false);
    let error = next.roads.routed(&"dns".into(), &target(5)).await.err().unwrap();
    assert!(matches!(error, Error::Circle { .. }), "{error}");
    assert_eq!(next.asked(), MAX_DEPTH);
}

#[tokio::test]
async fn two_ways_beside_each_other_are_no_circle() {
    let next = Next::new(2, false, false);
    let (one, to, first) = (Caller::default(), target(5), o(0));
    let both = tokio::join!(
        next.roads.through(&first, &to, &one),
        next.roads.through(&first, &to, &one)
    );
    assert!(both.0.is_err() && both.1.is_err());
    assert_eq!(next.asked(), 4, "both went the whole way");
}

#[tokio::test]
async fn a_road_without_an_engine_leads_nowhere() {
    let next = Next::new(1, false, false);
    let roads = Arc::clone(&next.roads);
    drop(next);
    let error = roads.through(&o(0), &target(5), &NOBODY).await.err().unwrap();
    assert!(matches!(error, Error::Closed), "{error}");
    let unset = Roads::new(Vec::new());
    assert!(unset.routed(&"x".into(), &target(5)).await.is_err());
}

#[test]
fn tags_are_found_unless_they_are_empty() {
    let roads = Roads::new(vec![String::new(), "a".into()]);
    assert_eq!(&*roads.find("here", "a").unwrap(), "a");
    for unknown in ["", "b"] {
        let error = roads.find("here", unknown).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("here: there is no outbound with the tag {unknown:?}")
        );
    }
}
