package rig

import (
	"testing"

	"allium/bson"
	"allium/internal/fakeserver"
)

// StartFake starts a server that answers hello as a standalone does, and leaves every other command
// to a function. It returns the connection string.
func StartFake(t testing.TB, answer func(r *fakeserver.Request)) (uri string) {
	t.Helper()
	return StartFakeWith(t, fakeserver.Hello(), answer)
}

// StartFakeWith is StartFake with another reply to hello.
func StartFakeWith(t testing.TB, hello bson.Raw, answer func(r *fakeserver.Request)) (uri string) {
	t.Helper()
	s := &fakeserver.Server{Handle: fakeserver.Standing(hello, answer)}
	return "mongodb://" + s.Listen(t) + "/?serverMonitoringMode=poll"
}
