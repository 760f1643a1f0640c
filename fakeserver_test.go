package allium_test

import (
	"testing"

	"allium/bson"
	"allium/internal/fakeserver"
)

// startFake starts a server that answers hello as a standalone does, and leaves every other command
// to a function. It returns the connection string.
func startFake(t testing.TB, answer func(r *fakeserver.Request)) (uri string) {
	t.Helper()
	return startFakeWith(t, fakeserver.Hello(), answer)
}

func startFakeWith(t testing.TB, hello bson.Raw, answer func(r *fakeserver.Request)) (uri string) {
	t.Helper()
	s := &fakeserver.Server{Handle: fakeserver.Standing(hello, answer)}
	return "mongodb://" + s.Listen(t) + "/?serverMonitoringMode=poll"
}

// nested returns a document that nests n levels deep.
func nested(n int) []byte {
	doc := []byte{5, 0, 0, 0, 0}
	for range n {
		start, d := bson.BeginDocument(nil)
		doc = bson.EndDocument(bson.AppendDocument(d, "a", doc), start)
	}
	return doc
}
