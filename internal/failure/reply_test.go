package failure

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"allium/bson"
	"allium/event"
	"allium/mongoerr"
)

// Whatever a server sends, an error is one line that prints.
func TestErrorsAreOneLine(t *testing.T) {
	const evil = "x\n2026-01-01 INFO all is well\r\x1b[2J\u009b"
	refused, _ := bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 1}, {Key: "codeName", Value: evil}, {Key: "errmsg", Value: evil}})
	concern, _ := bson.Marshal(bson.D{{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 1}, {Key: "codeName", Value: evil}, {Key: "errmsg", Value: evil}}}})
	write, _ := bson.Marshal(bson.D{{Key: "code", Value: 1}, {Key: "errmsg", Value: evil}})
	server := NewServerError("find", evil, refused)
	two := errors.Join(server, errors.New(evil))
	for name, err := range map[string]error{
		"server":        server,
		"write":         NewWriteError(write, 0),
		"write concern": NewWriteConcernError(evil, concern),
		"bulk write":    &mongoerr.BulkWriteError{WriteErrors: []*mongoerr.WriteError{NewWriteError(write, 0)}, Err: two},
		"connection":    &mongoerr.ConnectionError{Addr: evil, Op: "read", Wrapped: two},
		"timeout":       &mongoerr.TimeoutError{Phase: "read", Addr: evil, Wrapped: two},
		"selection": &mongoerr.SelectionError{Criteria: "writing", Wrapped: two, Reasons: []string{evil},
			Topology: &event.TopologyDescription{SetName: evil}},
		"authentication": &mongoerr.AuthError{Addr: evil, Wrapped: two},
		"joined":         Join(server, NewWriteError(write, 0)),
	} {
		text := err.Error()
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: %q has characters that do not print", name, text)
		}
		if !strings.Contains(text, `x\n2026`) {
			t.Errorf("%s: %q does not hold the server's text", name, text)
		}
	}
	if server.Message != evil {
		t.Errorf("Message is %q, want what the server sent", server.Message)
	}
}

func TestNewWriteConcernError(t *testing.T) {
	reply := func(v any) bson.Raw {
		raw, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: v}, {Key: "errorLabels", Value: bson.A{"of the reply"}}})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	empty, _ := bson.Marshal(bson.D{{Key: "ok", Value: 1}})
	for name, raw := range map[string]bson.Raw{"none": empty, "null": reply(nil)} {
		if e := NewWriteConcernError("a:1", raw); e != nil {
			t.Errorf("%s: %v", name, e)
		}
	}
	if e := NewWriteConcernError("a:1", reply("late")); e == nil || e.Addr != "a:1" || !strings.Contains(e.Message, "string, want a document") {
		t.Errorf("a text: %v", e)
	}
	raw := reply(bson.D{{Key: "code", Value: 64}, {Key: "codeName", Value: "WriteConcernFailed"}, {Key: "errmsg", Value: "late"},
		{Key: "errInfo", Value: bson.D{{Key: "wtimeout", Value: true}}}, {Key: "errorLabels", Value: bson.A{"of the error"}}})
	e := NewWriteConcernError("a:1", raw)
	if e == nil || e.Code != 64 || e.Name != "WriteConcernFailed" || e.Message != "late" || e.Addr != "a:1" ||
		!e.Details.Lookup("wtimeout").Equal(bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}) ||
		!slices.Equal(e.Labels, []string{"of the reply", "of the error"}) || !bytes.Equal(e.Reply, raw) {
		t.Errorf("%+v", e)
	}
	clear(raw) // the buffer is used again
	if e.Message != "late" || e.Raw.Lookup("code").IsZero() || e.Reply.Lookup("ok").IsZero() {
		t.Errorf("the error holds what the buffer of the reply has: %+v", e)
	}
}

// TestErrorsOwnTheirDocuments: an error lasts longer than the buffer that the reply is in.
func TestErrorsOwnTheirDocuments(t *testing.T) {
	doc, err := bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "index", Value: 1}, {Key: "code", Value: 11000}, {Key: "codeName", Value: "DuplicateKey"},
		{Key: "errmsg", Value: "twice"}, {Key: "errInfo", Value: bson.D{{Key: "why", Value: "so"}}}, {Key: "errorLabels", Value: bson.A{"a", "b"}},
		{Key: "topologyVersion", Value: bson.D{{Key: "counter", Value: int64(1)}}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "late"}, {Key: "errInfo", Value: bson.D{{Key: "a", Value: 1}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, made := range map[string]func(bson.Raw) any{
		"server error":        func(raw bson.Raw) any { return NewServerError("find", "a:1", raw) },
		"write error":         func(raw bson.Raw) any { return NewWriteError(raw, 3) },
		"write concern error": func(raw bson.Raw) any { return NewWriteConcernError("a:1", raw) },
	} {
		buffer := slices.Clone(doc)
		got, want := made(buffer), made(slices.Clone(doc))
		for i := range buffer {
			buffer[i] = 0xff
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: it is\n%+v, and was\n%+v", name, got, want)
		}
	}
}

func TestJoin(t *testing.T) {
	a, b := errors.New("a"), &mongoerr.ServerError{Code: 7, Message: "b"}
	err := Join(nil, a, nil, b)
	if err.Error() != "a; HostNotFound (7): b" || !errors.Is(err, a) || !mongoerr.HasCode(err, 7) {
		t.Errorf("%q", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("%v, want nil", err)
	}
}
