package mongoerr

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"allium/bson"
	"allium/event"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"größer, 東京 \"x\" \\":        "größer, 東京 \"x\" \\",
		"a\nb\r\n\tc":                `a\nb\r\n\tc`,
		"\x1b[31mred\x1b[0m":         `\x1b[31mred\x1b[0m`,
		"nul\x00bel\x07del\x7f":      `nul\x00bel\adel\x7f`,
		"csi\u009b2J":                `csi\u009b2J`,
		"line\u2028sep, bidi\u202e!": `line\u2028sep, bidi\u202e!`,
		"broken \xff\xc3":            `broken \xff\xc3`,
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

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
		"bulk write":    &BulkWriteError{WriteErrors: []*WriteError{NewWriteError(write, 0)}, Err: two},
		"connection":    &ConnectionError{Addr: evil, Op: "read", Wrapped: two},
		"timeout":       &TimeoutError{Phase: "read", Addr: evil, Wrapped: two},
		"selection": &SelectionError{Criteria: "writing", Wrapped: two, Reasons: []string{evil},
			Topology: &event.TopologyDescription{SetName: evil}},
		"authentication": &AuthError{Addr: evil, Wrapped: two},
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

func TestJoin(t *testing.T) {
	a, b := errors.New("a"), &ServerError{Code: 7, Message: "b"}
	err := Join(nil, a, nil, b)
	if err.Error() != "a; error 7: b" || !errors.Is(err, a) || !HasCode(err, 7) {
		t.Errorf("%q", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("%v, want nil", err)
	}
}
