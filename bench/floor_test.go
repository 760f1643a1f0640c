package bench

import (
	"encoding/binary"
	"slices"
	"testing"

	"allium/bson"
)

// TestRecordedMonitors: what a monitor sends and reads while a task is recorded is not of the task.
// A floor with such a step would wait for a reply that no server sends.
func TestRecordedMonitors(t *testing.T) {
	message := func(doc bson.D) []byte {
		t.Helper()
		body, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, messageHeader, messageHeader+len(body))
		binary.LittleEndian.PutUint32(b[12:], 2013)
		b = append(b, body...)
		binary.LittleEndian.PutUint32(b, uint32(len(b)))
		return b
	}
	query := func() []byte {
		b := make([]byte, 60)
		binary.LittleEndian.PutUint32(b, uint32(len(b)))
		binary.LittleEndian.PutUint32(b[12:], 2004)
		return b
	}
	var (
		task, streaming, times, fresh = new(recordedConn), new(recordedConn), new(recordedConn), new(recordedConn)

		ok   = message(bson.D{{Key: "ok", Value: 1.0}})
		ping = message(bson.D{{Key: "ping", Value: int32(1)}})
	)
	if asked := (event{task, true, message(bson.D{{Key: "hello", Value: true},
		{Key: "lsid", Value: bson.D{}}})}); asked.hello() {
		t.Error("a hello that the caller runs is taken for the driver's own")
	}
	hello := message(bson.D{{Key: "hello", Value: int32(1)}, {Key: "maxAwaitTimeMS", Value: int64(10000)}})
	got := exchanges([]event{
		{streaming, false, ok[:5]},
		{task, true, ping[:20]}, {task, true, ping[20:]},
		{streaming, false, ok[5:]}, // of a hello that was sent before
		{times, true, message(bson.D{{Key: "hello", Value: int32(1)}})}, {times, false, ok},
		{task, false, ok},
		{streaming, true, hello},
		{fresh, true, query()}, {fresh, false, ok}, {fresh, true, hello}, // a monitor that connects
	})
	if len(got) != 2 || got[0].conn != task || !got[0].write || !slices.Equal(got[0].data, ping) ||
		got[1].conn != task || got[1].write || !slices.Equal(got[1].data, ok) {
		t.Errorf("exchanges: %+v", got)
	}

	// A connection that is made for the task stays in sight: its floor cannot be told.
	for name, first := range map[string][]byte{"query": query(), "hello": message(bson.D{{Key: "isMaster", Value: 1}})} {
		events := []event{{fresh, true, first}, {fresh, false, ok}, {fresh, true, ping}, {fresh, false, ok}}
		if got := exchanges(events); len(got) != 4 || !got[0].hello() {
			t.Errorf("%s: exchanges of a new connection: %+v", name, got)
		}
		if p, err := newPlayer(events, 1, nil); err == nil {
			t.Errorf("%s: a player of a new connection: %+v", name, p)
		}
	}
}
