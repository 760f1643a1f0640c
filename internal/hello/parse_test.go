package hello

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"allium/bson"
	"allium/event"
	"allium/mongoerr"
)

// doc builds a document out of the functions that append its elements.
func doc(elements ...func([]byte) []byte) bson.Raw {
	start, b := bson.BeginDocument(nil)
	for _, e := range elements {
		b = e(b)
	}
	return bson.EndDocument(b, start)
}

func boolean(key string) func([]byte) []byte {
	return func(b []byte) []byte { return bson.AppendBool(b, key, true) }
}

func str(key, v string) func([]byte) []byte {
	return func(b []byte) []byte { return bson.AppendString(b, key, v) }
}

func i32(key string, v int32) func([]byte) []byte {
	return func(b []byte) []byte { return bson.AppendInt32(b, key, v) }
}

func i64(key string, v int64) func([]byte) []byte {
	return func(b []byte) []byte { return bson.AppendInt64(b, key, v) }
}

func TestParseKind(t *testing.T) {
	ok := i32("ok", 1)
	set := str("setName", "rs")
	for _, tt := range []struct {
		name  string
		reply bson.Raw
		want  event.ServerKind
	}{
		{"standalone", doc(ok, boolean("ismaster")), event.Standalone},
		{"mongos", doc(ok, str("msg", "isdbgrid"), boolean("isWritablePrimary")), event.Mongos},
		{"primary", doc(ok, set, boolean("isWritablePrimary")), event.RSPrimary},
		{"legacy primary", doc(ok, set, boolean("ismaster")), event.RSPrimary},
		{"isWritablePrimary wins", doc(ok, set, func(b []byte) []byte { return bson.AppendBool(b, "isWritablePrimary", false) },
			boolean("ismaster"), boolean("secondary")), event.RSSecondary},
		{"secondary", doc(ok, set, boolean("secondary")), event.RSSecondary},
		{"hidden", doc(ok, set, boolean("secondary"), boolean("hidden")), event.RSOther},
		{"arbiter", doc(ok, set, boolean("arbiterOnly")), event.RSArbiter},
		{"other", doc(ok, set), event.RSOther},
		{"ghost", doc(ok, boolean("isreplicaset")), event.RSGhost},
		{"double ok", doc(func(b []byte) []byte { return bson.AppendDouble(b, "ok", 1) }), event.Standalone},
		{"not ok", doc(i32("ok", 0), set, boolean("ismaster")), event.UnknownServer},
		{"no ok", doc(set, boolean("ismaster")), event.UnknownServer},
		{"empty", doc(), event.UnknownServer},
	} {
		got := Parse("a:27017", tt.reply)
		if got.Kind != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got.Kind, tt.want)
		}
		var se *mongoerr.ServerError
		if errors.As(got.LastError, &se) != (tt.want == event.UnknownServer) {
			t.Errorf("%s: error %v", tt.name, got.LastError)
		}
	}
}

func TestParseFields(t *testing.T) {
	pid := bson.NewObjectID()
	hosts := func(b []byte) []byte {
		at, b := bson.BeginArrayElement(b, "hosts")
		b = bson.AppendString(b, "0", "A:1")
		b = bson.AppendString(b, "1", "b")
		return bson.EndDocument(b, at)
	}
	sub := func(key string, d bson.Raw) func([]byte) []byte {
		return func(b []byte) []byte { return bson.AppendDocument(b, key, d) }
	}
	d := Parse("a:1", doc(
		i32("ok", 1), str("setName", "rs"), boolean("secondary"), hosts, str("me", "A:1"), str("primary", "B"),
		i32("minWireVersion", 6), i32("maxWireVersion", 25), i64("maxBsonObjectSize", 1<<40),
		i32("logicalSessionTimeoutMinutes", 30), i32("setVersion", 2),
		sub("topologyVersion", doc(func(b []byte) []byte { return bson.AppendObjectID(b, "processId", pid) }, i64("counter", 7))),
		sub("tags", doc(str("dc", "ny"), i32("rack", 1))),
		sub("lastWrite", doc(func(b []byte) []byte { return bson.AppendDateTime(b, "lastWriteDate", 1500) },
			sub("opTime", doc(func(b []byte) []byte { return bson.AppendTimestamp(b, "ts", bson.Timestamp{T: 3}) }, i64("t", 4))))),
	))
	if len(d.Hosts) != 2 || d.Hosts[0] != "a:1" || d.Hosts[1] != "b:27017" || d.Me != "a:1" || d.Primary != "b:27017" {
		t.Errorf("addresses: %v, me %s, primary %s", d.Hosts, d.Me, d.Primary)
	}
	if d.MinWireVersion != 6 || d.MaxWireVersion != 25 || d.MaxBSONObjectSize != 1<<31-1 {
		t.Errorf("numbers: %+v", d)
	}
	if d.SessionTimeoutMinutes == nil || *d.SessionTimeoutMinutes != 30 || *d.SetVersion != 2 {
		t.Errorf("session timeout %v, set version %v", d.SessionTimeoutMinutes, d.SetVersion)
	}
	if d.TopologyVersion == nil || d.TopologyVersion.ProcessID != pid || d.TopologyVersion.Counter != 7 {
		t.Errorf("topology version %v", d.TopologyVersion)
	}
	if len(d.Tags) != 1 || d.Tags["dc"] != "ny" {
		t.Errorf("tags %v", d.Tags)
	}
	if d.LastWriteDate.UnixMilli() != 1500 || d.OpTime.Timestamp.T != 3 || d.OpTime.Term != 4 {
		t.Errorf("last write %v %v", d.LastWriteDate, d.OpTime)
	}
}

func TestAddr(t *testing.T) {
	for in, want := range map[string]string{
		"Host": "host:27017", "Host:1": "host:1", "[::1]": "[::1]:27017", "[FE80::1]:2": "[fe80::1]:2",
		"/tmp/Mongo-27017.sock": "/tmp/Mongo-27017.sock",
	} {
		if got := Addr(in); got != want {
			t.Errorf("Addr(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(doc(i32("ok", 1), str("setName", "rs"), boolean("secondary"))))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := Parse("a:1", b)
		if (d.LastError != nil) != (d.Kind == event.UnknownServer) {
			t.Fatalf("%v with error %v", d.Kind, d.LastError)
		}
		_ = d.String()
		TopologyVersion(b)
	})
}

// A reply whose BSON is broken says nothing: what follows the broken place could have made another
// server of it.
func TestBrokenReply(t *testing.T) {
	whole, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "hosts", Value: bson.A{"a:1", "b:1"}}, {Key: "setName", Value: "rs"},
		{Key: "lastWrite", Value: bson.D{{Key: "opTime", Value: bson.D{{Key: "ts", Value: bson.Timestamp{T: 1}}}}}}, {Key: "maxWireVersion", Value: 25}})
	if err != nil {
		t.Fatal(err)
	}
	if d := Parse("a:1", bson.Raw{1, 2}); d.Kind != event.UnknownServer || d.LastError == nil {
		t.Errorf("no document: %v", d)
	}
	if d := Parse("a:1", whole); d.Kind != event.RSPrimary || d.LastError != nil {
		t.Fatalf("whole reply: %v", d)
	}
	for _, element := range []string{"\bisWritablePrimary", "\x04hosts", "\x021", "\x02setName", "\x03lastWrite", "\x03opTime", "\x11ts", "\x10maxWireVersion"} {
		broken := slices.Clone(whole)
		broken[bytes.Index(broken, []byte(element+"\x00"))] = 0x42
		d := Parse("a:1", broken)
		if e, ok := errors.AsType[*mongoerr.ConnectionError](d.LastError); d.Kind != event.UnknownServer || !ok || e.Addr != "a:1" || !e.Sent {
			t.Errorf("broken at %q: %v, %v, want an unknown server and why", element, d.Kind, d.LastError)
		}
	}
}

// A hello that names more members than a replica set can have is not believed, and not read to its
// end.
func TestParseManyMembers(t *testing.T) {
	list := func(key string, n int) func([]byte) []byte {
		return func(b []byte) []byte {
			at, b := bson.BeginArrayElement(b, key)
			for i := range n {
				b = bson.AppendStringValue(bson.AppendIndexHeader(b, bson.TypeString, i), "h")
			}
			return bson.EndDocument(b, at)
		}
	}
	ok, set := i32("ok", 1), str("setName", "rs")
	if d := Parse("a:1", doc(ok, set, list("hosts", 50), list("passives", 25), list("arbiters", 25))); d.LastError != nil || len(d.Members()) != 100 {
		t.Errorf("a hundred members: %d, %v", len(d.Members()), d.LastError)
	}
	many := doc(ok, set, boolean("secondary"), list("hosts", 10_000))
	if d := Parse("a:1", many); d.LastError == nil || d.Kind != event.UnknownServer {
		t.Errorf("10,000 members: %v, %v", d.Kind, d.LastError)
	}
	if n := testing.AllocsPerRun(10, func() { Parse("a:1", many) }); n > 500 {
		t.Errorf("%v allocations", n)
	}
}
