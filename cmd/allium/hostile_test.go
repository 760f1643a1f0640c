package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"allium/bson"
	"allium/internal/fakeserver"
)

// steering is text of every kind that steers a terminal.
const steering = "\x1b[2J\x00\x07\x08\r\x7f\u009b31m\u202e\u2066\u200f\u2028\ufeff\xff"

// startHostile starts a server that names ever new members, which it is as well, and puts escapes
// into each text.
func startHostile(t *testing.T, members bool) string {
	t.Helper()
	var addr string
	var n atomic.Int64
	s := &fakeserver.Server{Handle: func(r *fakeserver.Request) {
		start, d := bson.BeginDocument(nil)
		d = bson.AppendInt32(d, "ok", 1)
		if r.IsHello() {
			d = bson.AppendBool(d, "isWritablePrimary", true)
			d = bson.AppendBool(d, "helloOk", true)
			d = bson.AppendInt32(d, "maxWireVersion", 25)
			d = bson.AppendInt32(d, "maxBsonObjectSize", 16<<20)
			d = bson.AppendInt32(d, "maxMessageSizeBytes", 48_000_000)
			d = bson.AppendInt32(d, "maxWriteBatchSize", 100_000)
			if members {
				d = bson.AppendString(d, "setName", "rs")
				start, list := bson.BeginDocument(nil)
				// A name of the loopback for each number, so that every member can be reached.
				i := n.Add(1)
				port := addr[strings.LastIndex(addr, ":"):]
				list = bson.AppendString(list, "0", fmt.Sprintf("127.0.%d.%d%s", i/250, i%250+1, port))
				d = bson.AppendArray(d, "hosts", bson.EndDocument(list, start))
			}
		}
		d = bson.AppendString(d, "version", "8.0.0"+steering)
		d = bson.AppendString(d, "note"+strings.ReplaceAll(steering, "\x00", ""), steering)
		r.Reply(bson.EndDocument(d, start))
	}}
	addr = s.Listen(t)
	return addr
}

func checkPrintable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar) {
			t.Errorf("%U is printed in %q", r, text)
			return
		}
	}
}

// TestNothingSteersTheTerminal runs each verb that prints what a server sent, and arguments of the
// program's own.
func TestNothingSteersTheTerminal(t *testing.T) {
	addr := startHostile(t, false)
	for _, args := range [][]string{
		{"ping", "mongodb://" + addr}, {"ping", "-json", "mongodb://" + addr}, {"doctor", "mongodb://" + addr}, {"run", "mongodb://" + addr, `{"x": 1}`},
		{"run", "-canonical", "mongodb://" + addr, `{"x": 1}`}, {"run", "mongodb://" + addr, steering}, {"ping", steering}, {"doctor", steering}, {"watch", steering}, {steering}, {"help", steering},
		{"completion", steering},
	} {
		var out, errs strings.Builder
		run(t.Context(), args, &out, &errs)
		checkPrintable(t, out.String())
		checkPrintable(t, errs.String())
		if out.Len()+errs.Len() == 0 {
			t.Errorf("%q printed nothing", args)
		}
	}
}

// TestMembersWithoutEnd: servers that name ever new members are asked for a while.
func TestMembersWithoutEnd(t *testing.T) {
	for _, verb := range []string{"ping", "doctor"} {
		addr := startHostile(t, true)
		host, port, _ := strings.Cut(addr, ":")
		if host != "127.0.0.1" {
			t.Skipf("listens on %s", addr)
		}
		var out, errs strings.Builder
		if status := run(t.Context(), []string{verb, "-timeout", "200ms", "mongodb://127.0.0.1:" + port}, &out, &errs); status != failed {
			t.Errorf("%s: status %d", verb, status)
		}
		if !strings.Contains(out.String()+errs.String(), "more than 50 further members") {
			t.Errorf("%s: %s%s", verb, &out, &errs)
		}
	}
}

// TestRunMaxTime runs commands with a maxTimeMS of their own.
func TestRunMaxTime(t *testing.T) {
	addr := startHostile(t, false)
	for _, timeout := range []string{"0s", "30s"} {
		for _, cmd := range []string{`{"find": "c", "maxTimeMS": 100}`, `{"ping": 1}`} {
			out, _ := tool(t, succeeded, "run", "-timeout", timeout, "mongodb://"+addr, cmd)
			if !strings.Contains(out, `"ok":1`) {
				t.Errorf("%s: %s", cmd, out)
			}
		}
	}
}
