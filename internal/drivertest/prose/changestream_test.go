package prose

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// The prose tests of the specification Change Streams, by their numbers, on a replica set and a
// sharded cluster.

// onStreams runs a test on the topologies that have change streams.
func onStreams(t *testing.T, f func(t *testing.T, r *streamRig)) {
	for name, kind := range map[string]testdeploy.Kind{"replicaset": testdeploy.ReplicaSet(1), "sharded": testdeploy.Sharded(1, 1)} {
		t.Run(name, func(t *testing.T) {
			d, coll, log := rig.Watched(t, allium.ClientOptions{}, kind)
			f(t, &streamRig{t: t, d: d, coll: coll, log: log})
		})
	}
}

type streamRig struct {
	t    *testing.T
	d    *testdeploy.Deployment
	coll *allium.Collection[rig.Item]
	log  *rig.Sent
}

// failGetMore makes the next getMore fail with an error that can be resumed.
func (r *streamRig) failGetMore() {
	r.d.FailCommand(r.t, mongotest.Fail{Commands: []string{"getMore"}, Times: 1, Code: 7, Labels: []string{"ResumableChangeStreamError"}})
}

// resumed returns the $changeStream stage of the only aggregate since the last reset.
func (r *streamRig) resumed(t *testing.T) bson.Raw {
	t.Helper()
	all := r.log.Of("aggregate")
	if len(all) != 1 {
		t.Fatalf("%d aggregates, want 1: %v", len(all), r.log.Names())
	}
	return rig.StageOf(all[0])
}

func lookup(doc bson.Raw, path ...string) string { return doc.Lookup(path...).String() }

// Change Streams, prose test 1: the resume token follows the events.
func TestProseChangeStreamsToken(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		s := rig.Watch(t, r.coll, nil)
		for i := range int32(3) {
			rig.InsertItems(t, r.coll, i)
			rig.ExpectItems(t, s, i)
			before := s.ResumeToken()
			r.log.Reset()
			r.failGetMore()
			rig.InsertItems(t, r.coll, 10+i)
			rig.ExpectItems(t, s, 10+i)
			if got := lookup(r.resumed(t), "resumeAfter"); got != before.String() {
				t.Errorf("resumes after %s, want %s", got, before)
			}
		}
	})
}

// Change Streams, prose test 2: a missing resume token is an error.
func TestProseChangeStreamsMissingToken(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		s := rig.Watch(t, r.coll, []bson.M{{"$project": bson.M{"_id": 0}}})
		rig.InsertItems(t, r.coll, 1)
		r.log.Reset()
		var server *mongoerr.ServerError
		if s.Next(t.Context()) || !errors.As(s.Err(), &server) || server.Code != 280 {
			t.Fatalf("%v, %v", s.Current().Raw, s.Err())
		}
		if n := len(r.log.Of("aggregate")); n != 0 {
			t.Errorf("resumed %d times", n)
		}
	})
	t.Run("that the driver finds", func(t *testing.T) {
		// Servers refuse it by themselves; this one does not.
		d, coll, log := rig.Watched(t, allium.ClientOptions{})
		d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name != "getMore" {
				return nil, nil
			}
			return cursorReply(c, bson.D{{Key: "operationType", Value: "insert"}}), nil
		})
		s := rig.Watch(t, coll, nil)
		if s.Next(t.Context()) || s.Err() == nil || !strings.Contains(s.Err().Error(), "resume token is missing") {
			t.Fatalf("%v, %v", s.Current().Raw, s.Err())
		}
		if got := log.Names(); !slices.Equal(got, []string{"aggregate", "getMore", "killCursors"}) || s.ID() != 0 {
			t.Errorf("commands %v, cursor %d: the stream is not closed", got, s.ID())
		}
	})
}

// Change Streams, prose test 3: resumes once with the first pipeline and options.
func TestProseChangeStreamsResumeOnce(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		pipeline := []bson.M{{"$match": bson.M{"operationType": "insert"}}}
		s := rig.Watch(t, r.coll, pipeline, allium.WatchOptions{FullDocument: "updateLookup", BatchSize: new(int32(7)), Comment: "why"})
		rig.InsertItems(t, r.coll, 1)
		rig.ExpectItems(t, s, 1)
		first := r.log.Of("aggregate")[0].Command
		r.log.Reset()
		r.failGetMore()
		rig.InsertItems(t, r.coll, 2)
		rig.ExpectItems(t, s, 2)
		again := r.log.Of("aggregate")[0].Command
		for _, path := range [][]string{{"aggregate"}, {"cursor"}, {"comment"}, {"lsid"}, {"pipeline", "1"}, {"pipeline", "0", "$changeStream", "fullDocument"}} {
			if a, b := lookup(first, path...), lookup(again, path...); a != b || a == "" {
				t.Errorf("%v: %s at first, %s then", path, a, b)
			}
		}
		if v := rig.StageOf(r.log.Of("aggregate")[0]).Lookup("resumeAfter"); v.Type != bson.TypeEmbeddedDocument {
			t.Errorf("no resumeAfter in %v", again)
		}
	})
}

// Change Streams, prose test 4: errors of aggregate do not resume.
func TestProseChangeStreamsAggregateFails(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		fail := func(times int) {
			r.d.FailCommand(t, mongotest.Fail{Commands: []string{"aggregate"}, Times: times, Code: 130, Labels: []string{"ResumableChangeStreamError"}})
		}
		fail(1)
		if _, err := r.coll.Watch(t.Context(), nil); err == nil {
			t.Fatal("no error")
		}
		if got := r.log.Names(); !slices.Equal(got, []string{"aggregate"}) {
			t.Errorf("commands %v", got)
		}
		// Nor do those of the aggregate that resumes.
		s := rig.Watch(t, r.coll, nil)
		r.log.Reset()
		r.d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name == "getMore" {
				return rig.ErrorReply(7, "ResumableChangeStreamError"), nil
			}
			return nil, nil
		})
		fail(1)
		var server *mongoerr.ServerError
		if s.Next(t.Context()) || !errors.As(s.Err(), &server) || server.Code != 130 || s.Next(t.Context()) {
			t.Errorf("%v", s.Err())
		}
		if got := r.log.Names(); !slices.Equal(got, []string{"getMore", "killCursors", "aggregate"}) {
			t.Errorf("commands %v", got)
		}
	})
}

// Change Streams, prose test 6: a resume selects a server by the read preference.
func TestProseChangeStreamsResumeSelects(t *testing.T) {
	rs, coll, log := rig.Watched(t, allium.ClientOptions{}, testdeploy.ReplicaSet(3))
	d := rs.Mock(t, "a fail point that counts over all members")
	secondary := coll.With(allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}})
	s := rig.Watch(t, secondary, nil)
	for i := range int32(4) {
		d.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: 1, CloseConnection: true})
		rig.InsertItems(t, coll, i)
		rig.ExpectItems(t, s, i)
	}
	all := log.Of("aggregate")
	if len(all) != 5 {
		t.Errorf("%d aggregates", len(all))
	}
	for _, e := range all {
		if e.Addr == coll.Database().Client().Topology().Primary().Addr {
			t.Error("an aggregate went to the primary")
		}
		if mode := lookup(e.Command, "$readPreference", "mode"); mode != `"secondary"` {
			t.Errorf("read preference %s", mode)
		}
	}
}

// Change Streams, prose test 7: an empty first batch does not close the cursor.
func TestProseChangeStreamsEmptyFirstBatch(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		s := rig.Watch(t, r.coll, nil)
		if s.ID() == 0 {
			t.Fatal("the cursor is closed")
		}
		rig.InsertItems(t, r.coll, 1)
		rig.ExpectItems(t, s, 1)
		if n := len(r.log.Of("killCursors")); n != 0 {
			t.Errorf("%d killCursors", n)
		}
	})
}

// Change Streams, prose test 8: an error of killCursors is not an error of the resume.
func TestProseChangeStreamsKillCursorsFails(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		for i, fail := range []mongotest.Fail{{Code: 8}, {CloseConnection: true}} {
			s := rig.Watch(t, r.coll, nil)
			r.log.Reset()
			fail.Commands, fail.Times = []string{"killCursors"}, 1
			r.d.FailCommand(t, fail)
			r.d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name != "getMore" {
					return nil, nil
				}
				r.d.OnCommand(t, nil)
				return rig.ErrorReply(7, "ResumableChangeStreamError"), nil
			})
			rig.InsertItems(t, r.coll, int32(i))
			rig.ExpectItems(t, s, int32(i))
			if n := len(r.log.Of("killCursors")); n != 1 {
				t.Errorf("%d killCursors", n)
			}
			s.Close(t.Context())
		}
	})
}

// Change Streams, prose test 11: after the last event of a batch the token is the batch's.
func TestProseChangeStreamsTokenOfBatch(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		replies := logReplies(t, r)
		s := rig.Watch(t, replies.coll, nil, allium.WatchOptions{MaxAwaitTime: time.Millisecond})
		if s.TryNext(t.Context()) || s.ResumeToken().String() != replies.postBatch("getMore") {
			t.Errorf("empty batch: token %v, want %s", s.ResumeToken(), replies.postBatch("getMore"))
		}
		rig.InsertItems(t, r.coll, 1, 2)
		rig.ExpectItems(t, s, 1, 2)
		if s.ResumeToken().String() != replies.postBatch("getMore") {
			t.Errorf("end of the batch: token %v, want %s", s.ResumeToken(), replies.postBatch("getMore"))
		}
	})
}

// Change Streams, prose test 13: inside of a batch the token is the last event's.
func TestProseChangeStreamsTokenOfEvent(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		s := rig.Watch(t, r.coll, nil)
		rig.InsertItems(t, r.coll, 1, 2, 3)
		for i := range int32(2) {
			rig.ExpectItems(t, s, i+1)
			if s.ResumeToken().String() != s.Current().ID.String() {
				t.Errorf("token %v, want %v", s.ResumeToken(), s.Current().ID)
			}
		}
		if n := len(r.log.Of("getMore")); n != 1 {
			t.Fatalf("%d getMores: the events were not in one batch", n)
		}
	})
}

// Change Streams, prose test 14: before the first event the token is that of the options.
func TestProseChangeStreamsTokenOfOptions(t *testing.T) {
	_, coll, _ := rig.Watched(t, allium.ClientOptions{}) // a mongos has no first batch
	s := rig.Watch(t, coll, nil)
	rig.InsertItems(t, coll, 1, 2)
	rig.ExpectItems(t, s, 1)
	token := s.ResumeToken()
	for name, o := range map[string]allium.WatchOptions{"startAfter": {StartAfter: token}, "resumeAfter": {ResumeAfter: token}} {
		if got := rig.Watch(t, coll, nil, o).ResumeToken(); got.String() != token.String() {
			t.Errorf("%s: token %v, want %v", name, got, token)
		}
	}
	at := s.Current().ClusterTime
	if got := rig.Watch(t, coll, nil, allium.WatchOptions{StartAtOperationTime: &at}).ResumeToken(); got != nil {
		t.Errorf("neither: token %v, want none", got)
	}
}

// Change Streams, prose test 17: startAfter without an event resumes with startAfter.
func TestProseChangeStreamsStartAfterWithoutEvent(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		s := rig.Watch(t, r.coll, nil)
		rig.InsertItems(t, r.coll, 1)
		rig.ExpectItems(t, s, 1)
		after := rig.Watch(t, r.coll, nil, allium.WatchOptions{StartAfter: s.ResumeToken()})
		r.log.Reset()
		r.failGetMore()
		rig.InsertItems(t, r.coll, 2)
		rig.ExpectItems(t, after, 2)
		if got := r.resumed(t); got.Lookup("startAfter").IsZero() || !got.Lookup("resumeAfter").IsZero() {
			t.Errorf("resumes with %v", got)
		}
	})
}

// Change Streams, prose test 18: startAfter with an event resumes with resumeAfter.
func TestProseChangeStreamsStartAfterWithEvent(t *testing.T) {
	onStreams(t, func(t *testing.T, r *streamRig) {
		s := rig.Watch(t, r.coll, nil)
		rig.InsertItems(t, r.coll, 1, 2)
		rig.ExpectItems(t, s, 1)
		after := rig.Watch(t, r.coll, nil, allium.WatchOptions{StartAfter: s.ResumeToken()})
		rig.ExpectItems(t, after, 2)
		r.log.Reset()
		r.failGetMore()
		rig.InsertItems(t, r.coll, 3)
		rig.ExpectItems(t, after, 3)
		if got := r.resumed(t); !got.Lookup("startAfter").IsZero() || got.Lookup("resumeAfter").IsZero() {
			t.Errorf("resumes with %v", got)
		}
	})
}

// cursorReply returns the reply to a getMore with these documents.
func cursorReply(c *mongotest.Command, docs ...any) bson.Raw {
	id, _ := c.Body.Lookup("getMore").AsInt64()
	coll, _ := c.Body.Lookup("collection").StringValue()
	return rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: id},
		{Key: "ns", Value: c.DB + "." + coll}, {Key: "nextBatch", Value: docs}}}}))
}

// replyLog is a collection of a client that keeps the postBatchResumeToken of each reply.
type replyLog struct {
	coll *allium.Collection[rig.Item]
	last map[string]string
}

func (l *replyLog) postBatch(command string) string { return l.last[command] }

func logReplies(t *testing.T, r *streamRig) *replyLog {
	l := &replyLog{last: map[string]string{}}
	client := rig.Open(t, r.d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			l.last[e.CommandName] = e.Reply.Lookup("cursor", "postBatchResumeToken").String()
		},
	}})
	l.coll = allium.CollectionOf[rig.Item](client.Database(r.coll.Database().Name()), r.coll.Name())
	return l
}
