package mongoerr_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"allium/bson"
	"allium/event"
	"allium/mongoerr"
)

func document(t *testing.T, d bson.D) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// An error says command, namespace, server, code and cause, each once.
func TestTexts(t *testing.T) {
	refused := &mongoerr.ConnectionError{Addr: "a:1", Op: "dial", Wrapped: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	unknown := &event.TopologyDescription{Kind: event.UnknownTopology}
	write := func(i int) *mongoerr.WriteError {
		return &mongoerr.WriteError{Index: i, Code: 11000, Message: "dup", Command: "insert", Namespace: "d.c", Addr: "a:1"}
	}
	odd := func(i int64) *mongoerr.DecodeError {
		return &mongoerr.DecodeError{Command: "find", Namespace: "d.c", Index: i, Document: document(t, bson.D{}), Wrapped: errors.New("no")}
	}
	const most = 600 // bytes of what a server sent beside an error
	long := make([]byte, 2*most)
	for i := range long {
		long[i] = 'x'
	}
	for want, err := range map[string]error{
		"connection to a:1: dial: connection refused":           refused,
		"find d.c: connection to a:1: dial: connection refused": &mongoerr.ConnectionError{Addr: "a:1", Op: "dial", Command: "find", Namespace: "d.c", Wrapped: refused.Wrapped},
		"connection to a:1: dial: look up a: no such host":      &mongoerr.ConnectionError{Addr: "a:1", Op: "dial", Wrapped: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "a", Err: "no such host"}}},
		"find d.c: no server available for writing after 1s: topology is Unknown: a:1: dial: connection refused": &mongoerr.SelectionError{
			Criteria: "writing", Elapsed: time.Second, Command: "find", Namespace: "d.c", Topology: unknown, Wrapped: refused, Reasons: []string{"a:1: dial: connection refused"}},
		"no server available for writing after 1s: none; topology is Unknown": &mongoerr.SelectionError{
			Criteria: "writing", Elapsed: time.Second, Topology: unknown, Wrapped: errors.New("none")},
		"find d.c: read timed out after 1s (server a:1) by the timeout of the client: context deadline exceeded": &mongoerr.TimeoutError{
			Phase: "read", Elapsed: time.Second, Addr: "a:1", Source: "the timeout of the client", Command: "find", Namespace: "d.c", Wrapped: context.DeadlineExceeded},
		"read timed out after 1s (server a:1): connection to a:1: dial: connection refused": &mongoerr.TimeoutError{Phase: "read", Elapsed: time.Second, Addr: "a:1", Wrapped: refused},
		`read cancelled after 1s: context canceled\nconnection to a:1: dial: connection refused`: &mongoerr.TimeoutError{
			Phase: "read", Elapsed: time.Second, Source: "context", Wrapped: errors.Join(context.Canceled, refused)},
		"server selection timed out after 1s by the context's deadline: no server available for writing after 1s: topology is Unknown": &mongoerr.TimeoutError{
			Phase: "server selection", Elapsed: time.Second, Source: "the context's deadline",
			Wrapped: &mongoerr.SelectionError{Criteria: "writing", Elapsed: time.Second, Topology: unknown, Reasons: nil, Wrapped: nil}},
		"find d.c on a:1: BadValue (2): no":                                                                     &mongoerr.ServerError{Command: "find", Namespace: "d.c", Addr: "a:1", Code: 2, Message: "no"},
		"error 999999: no":                                                                                      &mongoerr.ServerError{Code: 999999, Message: "no"},
		`update d.c on a:1: Odd (7): no; details: {"why":"x"}`:                                                  &mongoerr.ServerError{Command: "update", Namespace: "d.c", Addr: "a:1", Name: "Odd", Code: 7, Message: "no", Raw: document(t, bson.D{{Key: "errInfo", Value: bson.D{{Key: "why", Value: "x"}}}})},
		"insert d.c on a:1: DuplicateKey (11000): dup":                                                          write(0),
		"insert d.c on a:1: write 3: DuplicateKey (11000): dup":                                                 write(3),
		"write 0: DuplicateKey (11000): dup":                                                                    &mongoerr.WriteError{Code: 11000, Message: "dup"},
		"insert d.c on a:1: write concern: UnsatisfiableWriteConcern (100): x":                                  &mongoerr.WriteConcernError{Command: "insert", Namespace: "d.c", Addr: "a:1", Code: 100, Message: "x"},
		"bulk write: insert d.c on a:1: write 0: DuplicateKey (11000): dup; write 1: DuplicateKey (11000): dup": &mongoerr.BulkWriteError{WriteErrors: []*mongoerr.WriteError{write(0), write(1)}},
		"bulk write: ended; insert d.c on a:1: write 0: DuplicateKey (11000): dup; write 1: DuplicateKey (11000): dup; write 2: DuplicateKey (11000): dup; write 3: DuplicateKey (11000): dup; and 1 more error": &mongoerr.BulkWriteError{
			Err: errors.New("ended"), WriteErrors: []*mongoerr.WriteError{write(0), write(1), write(2), write(3), write(4)}},
		`ping: authentication of user "u" of database "admin" with SCRAM-SHA-1 on a:1: no`: &mongoerr.AuthError{Command: "ping", Addr: "a:1", Username: "u", Source: "admin", Mechanism: "SCRAM-SHA-1", Wrapped: errors.New("no")},
		"find d.c: Connection to a:1 interrupted due to server monitor timeout":            &mongoerr.PoolClearedError{Command: "find", Namespace: "d.c", Addr: "a:1", Interrupted: true},
		"find d.c: decode document 1: no":                                                  mongoerr.DecodeErrors{odd(1)},
		"find d.c: decode document 1: no (and 1 more does not decode)":                     mongoerr.DecodeErrors{odd(1), odd(2)},
		"find d.c: decode document 1: no (and 2 more do not decode)":                       mongoerr.DecodeErrors{odd(1), odd(2), odd(3)},
	} {
		if got := err.Error(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		// The text of a timeout contains that of its cause (specification: Client Side Operations
		// Timeout, "Errors"), whatever that is.
		timeout := &mongoerr.TimeoutError{Phase: "read", Elapsed: time.Second, Addr: "a:1", Source: "context", Command: "find", Wrapped: err}
		if !strings.Contains(timeout.Error(), err.Error()) {
			t.Errorf("%s does not contain %s", timeout, err)
		}
	}
	e := &mongoerr.WriteError{Code: 121, Message: "no", Details: document(t, bson.D{{Key: "x", Value: string(long)}})}
	if got := e.Error(); len(got) > most+100 || got[len(got)-3:] != "..." {
		t.Errorf("details of %d bytes end in %s", len(got), got[len(got)-10:])
	}
}
