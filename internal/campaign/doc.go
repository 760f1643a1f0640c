// Package campaign tests the promise that a driver lives by: what was acknowledged is there,
// nothing is done twice, nothing leaks, and every call returns in time with an error of a
// documented kind.
//
// A history is some minutes or hours of many clients with mixed work against a mongotest
// deployment, while an adversary breaks it. In a testing/synctest bubble, on the network in
// memory, it takes a second or less. The second mode runs in real time on loopback TCP, under the
// race detector.
//
// The simulated program behaves as programs do: each call runs on a goroutine of its own that may
// panic or end, as a server of net/http runs its handlers; contexts end at any step; sessions are
// left without an end, and clients closed with open transactions; documents do not decode.
//
// # What a seed fixes
//
// A seed determines the [Plan]: the topology's settings, each client's options, each actor's
// sequence of operations with its pauses and patience, and each step of the adversary with its
// time, target and length. Every actor draws from a stream of its own, and as many numbers
// whatever comes back, so that leaving one out does not change the others. Replies are delayed by
// what follows from the numbers of the connection and the reply.
//
// Not fixed are the order in which goroutines run that wake at the same instant, and what the
// driver itself draws by chance: the server among several suitable ones, backoffs, session ids.
// The command therefore runs a history on one processor, and [Shrink] repeats each candidate a
// few times.
package campaign
