package faults

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"allium"
	"allium/bson"
	"allium/internal/fakeserver"
)

// place is an element of a document: where its type byte lies, and the keys down to it.
type place struct {
	at   int
	path []string
}

func (p place) String() string { return strings.Join(p.path, ".") }

// places returns the elements of a document down to a level.
func places(doc bson.Raw, levels int) []place { return placesIn(doc, 0, nil, levels) }

func placesIn(doc bson.Raw, base int, path []string, levels int) (list []place) {
	b := doc.Elements()
	for len(b) > 0 {
		key, v, rest, err := bson.ReadElement(b)
		if err != nil {
			panic(err)
		}
		at := base + len(doc) - 1 - len(b)
		p := place{at, append(slices.Clone(path), strings.Clone(key))}
		list = append(list, p)
		if levels > 1 && (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) {
			list = append(list, placesIn(v.Value, at+1+len(key)+1, p.path, levels-1)...)
		}
		b = rest
	}
	return list
}

// A reply that cannot be read to its end is an error of whatever operation asked for it, wherever
// its BSON is broken: what the server said behind that place may be that the operation failed.
func TestBrokenReplies(t *testing.T) {
	const broken = 0x42 // no BSON type
	written := bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "upserted", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "_id", Value: 1}}}}}
	for name, tc := range answeredOperations() {
		if name == "insert" || name == "update" || name == "delete" || name == "bulk write" || name == "run command" {
			tc.reply = written // the other one reports errors
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole, err := bson.Marshal(slices.Concat(bson.D{{Key: "ok", Value: 1}}, tc.reply,
					bson.D{{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 1}}}}, {Key: "operationTime", Value: bson.Timestamp{T: 1}}}))
				if err != nil {
					t.Fatal(err)
				}
				var answer bson.Raw
				client := openFake(t, fakeserver.Hello(), func(r *fakeserver.Request) { r.Reply(answer) })
				coll := client.Database("x").Collection("y")
				if answer = whole; tc.run(t.Context(), client, coll) != nil {
					t.Fatalf("whole reply: %v", tc.run(t.Context(), client, coll))
				}
				levels := 3 // of the batch every element; what is in its documents is for their types to read
				if name == "find and modify" || name == "distinct" || name == "run command" {
					levels = 2
				}
				for _, p := range places(whole, levels) {
					if len(p.path) > 2 && p.path[1] == "postBatchResumeToken" {
						continue // it is handed on as it is
					}
					answer = slices.Clone(whole)
					answer[p.at] = broken
					if err := tc.run(t.Context(), client, coll); err == nil {
						t.Errorf("reply broken at %v: no error", p)
					} else if strings.Contains(err.Error(), "\n") {
						t.Errorf("reply broken at %v: error of several lines: %q", p, err)
					}
				}
			})
		})
	}
}

// openFake opens a client of a server in memory that answers hello with a document and leaves other
// commands to answer.
func openFake(t *testing.T, hello bson.Raw, answer func(r *fakeserver.Request)) *allium.Client {
	t.Helper()
	network := &fakeserver.Network{}
	network.Add("fake:27017", &fakeserver.Server{Handle: fakeserver.Standing(hello, answer)})
	client, err := allium.Open("mongodb://fake/?serverMonitoringMode=poll", allium.ClientOptions{Dialer: network})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close(context.Background())
		network.Wait()
	})
	return client
}

// A hello that cannot be read to its end does not make a standalone of a member of a replica set.
func TestBrokenHello(t *testing.T) { synctest.Test(t, testBrokenHello) }

func testBrokenHello(t *testing.T) {
	start, d := bson.BeginDocument(nil)
	d = bson.AppendBool(d, "isWritablePrimary", true)
	d = bson.AppendInt32(d, "maxWireVersion", 25)
	d = bson.AppendInt32(d, "ok", 1)
	at := len(d)
	d = bson.AppendString(d, "setName", "rs")
	hello := bson.EndDocument(d, start)
	hello[at] = 0x42
	client := openFake(t, hello, func(r *fakeserver.Request) { r.Reply(fakeserver.OK()) })
	err := client.Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), "malformed reply") {
		t.Errorf("error %v, want that the reply is malformed", err)
	}
}
