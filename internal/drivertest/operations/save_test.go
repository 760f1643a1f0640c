package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/mongoerr"
	"allium/mongotest"
)

type page struct {
	ID      string `bson:"_id"`
	Text    string `bson:",omitempty"`
	Tags    []string
	Author  struct{ Name, Mail string }
	Version int
}

// TestSaveSendsWhatDiffers looks at the statement that Save sends, and at what it leaves behind.
func TestSaveSendsWhatDiffers(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	pages := allium.As[page](p.Coll)
	for i, c := range []struct {
		stored bson.D // besides the _id
		change func(p *page)
		want   string // the statement's filter and update; "" if nothing is sent
	}{
		{bson.D{{Key: "text", Value: "a"}, {Key: "version", Value: 3}}, func(p *page) { p.Text = "b" },
			`{"q":{"_id":"home","version":3},"u":{"$set":{"text":"b","version":4}}}`},
		{bson.D{{Key: "text", Value: "a"}, {Key: "version", Value: 3}}, func(p *page) { p.Text = "" }, // which omitempty would hide
			`{"q":{"_id":"home","version":3},"u":{"$unset":{"text":""},"$set":{"version":4}}}`},
		{bson.D{{Key: "author", Value: bson.D{{Key: "born", Value: 1815}, {Key: "name", Value: "Ada"}}}}, func(p *page) { p.Author.Mail = "a@b" },
			`{"q":{"_id":"home","version":{"$in":[0,null]}},"u":{"$set":{"author.mail":"a@b","version":1}}}`},
		{bson.D{{Key: "version", Value: 3}}, func(p *page) { p.Version = 17; p.Tags = []string{"x"} },
			`{"q":{"_id":"home","version":3},"u":{"$set":{"tags":["x"],"version":4}}}`},
		{bson.D{{Key: "version", Value: 3}}, func(p *page) {}, ``},
		{bson.D{{Key: "version", Value: 3}}, func(p *page) { p.Version = 9 }, ``},
		{bson.D{{Key: "version", Value: nil}}, func(p *page) { p.Text = "b" },
			`{"q":{"_id":"home","version":{"$in":[0,null]}},"u":{"$set":{"text":"b","version":1}}}`},
	} {
		_, err := p.Coll.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: "home"}}, c.stored, allium.ReplaceOptions{Upsert: true})
		if err != nil {
			t.Fatal(err)
		}
		before, err := pages.FindOne(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		after := before
		c.change(&after)
		p.Recorder.Reset()
		if err := allium.Save(t.Context(), pages, "version", before, &after); err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		got := ""
		for _, sent := range p.Recorder.Of("update") {
			s := bson.Raw(sent.Body.Lookup("updates", "0").Value)
			got += fmt.Sprintf(`{"q":%s,"u":%s}`, s.Lookup("q"), s.Lookup("u"))
		}
		if got != c.want {
			t.Errorf("%d: sent %s, want %s", i, got, c.want)
		}
		if c.want == "" {
			continue
		}
		now, err := pages.FindOne(t.Context(), bson.D{})
		if err != nil || fmt.Sprint(now) != fmt.Sprint(after) || now.Version != before.Version+1 {
			t.Errorf("%d: the collection has %+v, %v, the program %+v, before %+v", i, now, err, after, before)
		}
		if err := allium.Save(t.Context(), pages, "version", before, &after); !errors.Is(err, mongoerr.ErrConflict) {
			t.Errorf("%d: a second Save from the same document: %v", i, err)
		}
		if after.Version != now.Version {
			t.Errorf("%d: the version is %d after a conflict, was %d", i, after.Version, now.Version)
		}
	}
}

// TestSaveKeepsWhatItDoesNotKnow: fields that the type does not have stay, in documents inside too.
func TestSaveKeepsWhatItDoesNotKnow(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	pages := allium.As[page](p.Coll)
	rig.Must(p.Coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "home"}, {Key: "other", Value: 1}, {Key: "author", Value: bson.D{{Key: "born", Value: 1815}}}}))
	before := rig.Must(pages.FindOne(t.Context(), bson.D{}))
	after := before
	after.Author.Name, after.Text = "Ada", "Hello"
	if err := allium.Save(t.Context(), pages, "version", before, &after); err != nil {
		t.Fatal(err)
	}
	got := rig.Must(p.Coll.FindOne(t.Context(), bson.D{}))
	if want := `{"_id":"home","other":1,"author":{"born":1815,"name":"Ada"},"text":"Hello","version":1}`; got.String() != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSaveOfOtherDocuments saves what is no struct, and what no update can name.
func TestSaveOfOtherDocuments(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	rig.Must(p.Coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "of", Value: 1}}}, {Key: "a", Value: 1}, {Key: "x.y", Value: 1}, {Key: "v", Value: int64(1) << 40}}))
	before := rig.Must(p.Coll.FindOne(t.Context(), bson.D{}))
	after := append(bson.D{}, before...)
	after.Set("a", 2)
	if err := allium.Save(t.Context(), &p.Coll.Collection, "v", before, &after); err != nil {
		t.Fatal(err)
	}
	m := rig.Must(allium.As[bson.M](p.Coll).FindOne(t.Context(), bson.D{}))
	changed := bson.M{"x.y": 2}
	for k, v := range m {
		if k != "x.y" {
			changed[k] = v
		}
	}
	p.Recorder.Reset()
	if err := allium.Save(t.Context(), allium.As[bson.M](p.Coll), "v", m, &changed); err != nil { // by a replacement
		t.Fatal(err)
	}
	got := rig.Must(allium.As[bson.M](p.Coll).FindOne(t.Context(), bson.D{}))
	if got.String() != changed.String() || got["v"] != int64(1)<<40+2 || got["a"] != int32(2) || got["x.y"] != int32(2) {
		t.Errorf("the collection has %v, the program %v", got, changed)
	}
	raw := rig.Must(allium.As[bson.Raw](p.Coll).FindOne(t.Context(), bson.D{}))
	next := rig.Must(bson.Marshal(bson.D{{Key: "_id", Value: raw.Lookup("_id")}, {Key: "v", Value: 0}, {Key: "x.y", Value: 2}}))
	saved := bson.Raw(next)
	if err := allium.Save(t.Context(), allium.As[bson.Raw](p.Coll), "v", raw, &saved); err != nil {
		t.Fatal(err)
	}
	if got := rig.Must(allium.As[bson.Raw](p.Coll).FindOne(t.Context(), bson.D{})); got.Lookup("v").String() != saved.Lookup("v").String() || !got.Lookup("a").IsZero() {
		t.Errorf("the collection has %v, the program %v", got, saved)
	}
}

func TestSaveRefuses(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	pages := allium.As[page](p.Coll)
	a, b := page{ID: "a"}, page{ID: "a", Text: "b"}
	p.Recorder.Reset()
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"no such field": {func() error { return allium.Save(t.Context(), pages, "vers", a, &b) }, `has no field with the key "vers"`},
		"a path":        {func() error { return allium.Save(t.Context(), pages, "a.b", a, &b) }, "cannot be the key of a version"},
		"no key":        {func() error { return allium.Save(t.Context(), pages, "", a, &b) }, "cannot be the key of a version"},
		"no number":     {func() error { return allium.Save(t.Context(), pages, "text", page{ID: "a", Text: "x"}, &b) }, "the version is a BSON string"},
		"another _id":   {func() error { return allium.Save(t.Context(), pages, "version", page{ID: "b"}, &b) }, "the _id differs"},
		"nil":           {func() error { return allium.Save(t.Context(), pages, "version", a, nil) }, "document is nil"},
		"upsert": {func() error {
			return allium.Save(t.Context(), pages, "version", a, &b, allium.UpdateOptions{Upsert: true})
		}, "does not upsert"},
		"no _id": {func() error {
			c := &p.Coll.Collection
			return allium.Save(t.Context(), c, "v", bson.D{}, &bson.D{{Key: "a", Value: 1}})
		}, "has no _id"},
	} {
		if err := c.call(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if sent := p.Recorder.Of("update"); len(sent) > 0 {
		t.Errorf("%d updates were sent", len(sent))
	}
	if err := allium.Save(t.Context(), pages, "version", a, &b); !errors.Is(err, mongoerr.ErrConflict) {
		t.Errorf("a document that has gone: %v", err)
	}
	unacknowledged := pages.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 0}})
	if err := allium.Save(t.Context(), unacknowledged, "version", a, &b); err == nil || !strings.Contains(err.Error(), "acknowledged") {
		t.Errorf("unacknowledged: %v", err)
	}
}

// TestSaveByOptions: the names of fields are those of the collection's options, and options that
// clear what is decoded into do not clear the program's document.
func TestSaveByOptions(t *testing.T) {
	type doc struct {
		ID   int    `json:"_id"`
		Text string `json:"the_text"`
		V    int    `json:"the_version"`
	}
	p := rig.StartRecorded(t, allium.ClientOptions{BSON: &bson.Options{JSONTags: true, ClearStructs: true}})
	c := allium.As[doc](p.Coll)
	rig.Must(c.InsertOne(t.Context(), doc{1, "a", 0}))
	after := doc{1, "b", 0}
	if err := allium.Save(t.Context(), c, "the_version", doc{1, "a", 0}, &after); err != nil {
		t.Fatal(err)
	}
	if got := rig.Must(c.FindOne(t.Context(), bson.D{})); got != after || after != (doc{1, "b", 1}) {
		t.Errorf("the collection has %v, the program %v", got, after)
	}
}

// tally is a document that several programs change at once.
type tally struct {
	ID      int `bson:"_id"`
	Sum     int
	Log     []string
	Parts   map[string]int
	Version int64
}

// TestSaveLosesNoUpdate has many savers of one document work against each other, while connections
// break, replies come with errors though the write was done, and primaries step down. What a saver
// was told to be done is there once, what was refused is not, and nobody's change undoes another.
func TestSaveLosesNoUpdate(t *testing.T) { synctest.Test(t, saveWhileThingsBreak) }

func saveWhileThingsBreak(t *testing.T) {
	d, client, _ := rig.Bubble(t, allium.ClientOptions{ReadConcern: &consistency.ReadConcern{Level: consistency.ReadMajority}, WriteConcern: consistency.Majority()}, mongotest.ReplicaSet(3))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	c := allium.CollectionOf[tally](client.Database("d"), "c")
	rig.Must(c.InsertOne(ctx, tally{ID: 1, Parts: map[string]int{}}))

	const savers, each = 6, 25
	var done, unknown sync.Map
	var conflicts, failures, saves atomic.Int64
	var working sync.WaitGroup
	for saver := range savers {
		working.Go(func() {
			name := fmt.Sprint("s", saver)
			for i := range each {
				entry := fmt.Sprint(name, "-", i)
				for ctx.Err() == nil {
					before, err := c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}})
					if err != nil {
						failures.Add(1)
						continue
					}
					after := before
					after.Sum++
					after.Log = append(append([]string{}, before.Log...), entry)
					after.Parts = map[string]int{}
					for k, v := range before.Parts {
						after.Parts[k] = v
					}
					after.Parts[name]++
					err = allium.Save(ctx, c, "version", before, &after)
					if errors.Is(err, mongoerr.ErrConflict) {
						conflicts.Add(1)
						continue
					}
					if err != nil {
						unknown.Store(entry, err)
						failures.Add(1)
					} else {
						done.Store(entry, after.Version)
					}
					saves.Add(1)
					break
				}
			}
		})
	}
	stop := make(chan struct{})
	var breaking sync.WaitGroup
	breaking.Go(func() { // a fault for each few saves, so that time does not matter
		for n := int64(0); ; n++ {
			for saves.Load() < 5*n {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
			switch n % 4 {
			case 0:
				d.FailCommand(mongotest.Fail{Commands: []string{"update"}, Times: 2, CloseConnection: true})
			case 1:
				d.FailCommand(mongotest.Fail{Commands: []string{"update"}, Times: 1, WriteConcernError: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "shutting down"}}})
			case 2:
				d.FailCommand(mongotest.Fail{Commands: []string{"update"}, Times: 1, Code: 11600})
			case 3:
				d.StepDown()
			}
		}
	})
	working.Wait()
	close(stop)
	breaking.Wait()
	d.ClearFailures()
	if ctx.Err() != nil {
		t.Fatal("the savers did not come to an end")
	}
	end, err := c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, entry := range end.Log {
		if at[entry]++; at[entry] > 1 {
			t.Errorf("%s is there twice", entry)
		}
		if v, ok := done.Load(entry); ok && v != int64(i+1) {
			t.Errorf("%s was saved as version %v, and is the change %d", entry, v, i+1)
		}
		if _, failed := unknown.Load(entry); failed {
			continue
		}
		if _, ok := done.Load(entry); !ok {
			t.Errorf("%s is there, and was never saved", entry)
		}
	}
	done.Range(func(entry, _ any) bool {
		if at[entry.(string)] != 1 {
			t.Errorf("%s was saved and is lost", entry)
		}
		return true
	})
	sum := 0
	for _, n := range end.Parts {
		sum += n
	}
	if n := len(end.Log); end.Sum != n || int(end.Version) != n || sum != n {
		t.Errorf("%d changes, sum %d, parts %d, version %d", n, end.Sum, sum, end.Version)
	}
	if conflicts.Load() == 0 || len(end.Log) < savers*each/2 {
		t.Errorf("%d conflicts, %d failures, %d changes: the savers did not meet", conflicts.Load(), failures.Load(), len(end.Log))
	}
	t.Logf("%d changes, %d conflicts, %d failures", len(end.Log), conflicts.Load(), failures.Load())
}
