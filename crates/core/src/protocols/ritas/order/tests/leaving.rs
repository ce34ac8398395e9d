//! Order 3: what stands in a payload that is listed no other has to carry.

use super::super::super::atomic_broadcast::WINDOW;
use super::super::PAYLOADS_IN_FLIGHT;
use super::*;
use alloc::collections::BTreeSet;

/// How many payloads of its own a replica has sent.
fn payloads(net: &Net<Counter>, from: u8) -> usize {
    let initial = net.sent.iter().filter(|frame| frame.from == r(from)).flat_map(said);
    let initial = initial.filter(|said| matches!(said.statement, Statement::Initial(_)));
    initial.filter_map(|said| said.path.number(Layer::Message)).collect::<BTreeSet<_>>().len()
}

/// The client asks all, as it does if nobody answers.
fn ask_all(net: &mut Net<Counter>, request: &Request) {
    (0..3).for_each(|to| net.forge(c(request.client.session), r(to), Message::Request(request.clone())));
    net.settle();
}

#[test]
fn what_is_listed_nobody_else_carries() {
    for is_listed in [true, false] {
        let mut net = net_of("ritas", 4, 3);
        let requests = [0, 1, 2].map(|session| net.request(InstanceId(1), session, 1, &Counter::add(1)));
        net.lose(|frame| frame.from == r(3) || frame.to == r(3) || is_about(frame, Layer::Proposal));
        requests.iter().for_each(|request| ask_all(&mut net, request));
        let on_their_way = PAYLOADS_IN_FLIGHT as usize;
        (0..3).for_each(|id| assert_eq!(payloads(&net, id), on_their_way, "the third request waits"));
        if is_listed {
            send_from_3(&mut net, 0, requests[2].clone());
            net.lose(|frame| frame.from == r(3) || frame.to == r(3) || is_about(frame, Layer::Proposal));
            net.settle();
        }
        assert_eq!(history(&net, &[0, 1, 2]), [0; 3], "no round ends");
        net.isolate(&[3]);
        net.pass(A_WHILE);
        assert_eq!(history(&net, &[0, 1, 2]), [3; 3]);
        let sent: usize = (0..3).map(|id| payloads(&net, id)).sum();
        assert_eq!(sent > 3 * on_their_way, !is_listed, "somebody has to carry it, or nobody");
    }
}

/// A liar's payload that is beyond the window of its sender is delivered, and listed only if those before it are: this
/// liar sends none of them (ritas-F7).
#[test]
fn what_is_not_listed_yet_others_carry() {
    for number in [0, WINDOW - 1, WINDOW, WINDOW + 4] {
        let mut net = net_of("ritas", 4, 3);
        let requests = [0, 1, 2].map(|session| net.request(InstanceId(1), session, 1, &Counter::add(1)));
        net.lose(|frame| is_about(frame, Layer::Proposal));
        requests.iter().for_each(|request| ask_all(&mut net, request));
        send_from_3(&mut net, number, requests[2].clone());
        net.lose(|frame| frame.from == r(3) || frame.to == r(3) || is_about(frame, Layer::Proposal));
        net.settle();
        net.isolate(&[3]);
        net.pass(A_WHILE);
        assert_eq!(history(&net, &[0, 1, 2]), [3; 3]);
    }
}
