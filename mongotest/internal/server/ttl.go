package server

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// ttlMonitor deletes documents that are older than an index, a clustered collection or a time
// series collection says (expireAfterSeconds). It has a timer only while there is anything that can
// expire. Safe for concurrent use.
type ttlMonitor struct {
	data *Data // set when the store is made

	mu    sync.Mutex
	node  *Node // whose parameters say how often it looks
	timer *time.Timer
	ended atomic.Bool // set with mu held
	busy  sync.Mutex  // held during a pass

	passes, deleted int64
}

// ArmTTL is called when there may be something new that can expire, and with again set when a
// parameter of the monitor has changed.
func (n *Node) ArmTTL(again bool) {
	t := &n.data.ttl
	t.mu.Lock()
	defer t.mu.Unlock()
	t.node = n
	if t.timer != nil && again && t.timer.Stop() {
		t.timer = nil
	}
	t.armLocked()
}

// armLocked starts the timer for the next pass, if there is anything to look after.
func (t *ttlMonitor) armLocked() {
	if t.ended.Load() || t.timer != nil || t.node == nil || !anyExpires(t.node.Store().Latest()) {
		return
	}
	wait := time.Duration(max(t.node.IntParameter("ttlMonitorSleepSecs"), 1)) * time.Second
	t.timer = time.AfterFunc(wait, func() {
		t.pass()
		t.mu.Lock()
		t.timer = nil
		t.armLocked()
		t.mu.Unlock()
	})
}

// stop ends the monitor and waits for a pass that runs.
func (t *ttlMonitor) stop() {
	t.mu.Lock()
	t.ended.Store(true)
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.busy.Lock() // waits for a pass
	defer t.busy.Unlock()
}

// errEnded is why a pass ends early.
var errEnded = errors.New("the monitor has ended")

// meter counts the steps of a pass, which ends with the monitor.
func (t *ttlMonitor) meter() *work.Meter {
	return work.New(func() error {
		if t.ended.Load() {
			return errEnded
		}
		return nil
	})
}

func anyExpires(st *store.State) (any bool) {
	st.Colls("", func(c *store.Coll) bool {
		any = len(expiries(c)) > 0
		return !any
	})
	return any
}

// expiry is a rule of a collection: documents whose date in a field is so old go.
type expiry struct {
	path  string
	after time.Duration
	index *store.Index // nil: the collection is ordered by the field, or has no index
}

// expiries returns the rules of a collection.
func expiries(c *store.Coll) []expiry {
	if c.View {
		return nil
	}
	var list []expiry
	for i := range c.Indexes() {
		ix := &c.Indexes()[i]
		if ix.Expire != nil && len(ix.Fields) == 1 && ix.ByValue() && !c.Capped {
			list = append(list, expiry{ix.Fields[0].Path, seconds(*ix.Expire), ix})
		}
	}
	if c.ExpireSecs > 0 {
		path := "_id"
		if c.TimeSeries {
			path, _ = series.Fields(c)
		}
		list = append(list, expiry{path: path, after: seconds(c.ExpireSecs)})
	}
	return list
}

// seconds returns a duration that is as long as a time.Duration can be at most.
func seconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), 1<<31)) * time.Second
}

// pass deletes everything that has expired. Only a primary does it; what a transaction is in the
// way of stays for the next pass.
func (t *ttlMonitor) pass() {
	t.mu.Lock()
	n, ended := t.node, t.ended.Load()
	t.mu.Unlock()
	if n == nil || ended || t.data.set != nil && t.data.set.Primary() == nil {
		return
	}
	if enabled, _ := n.Parameter("ttlMonitorEnabled"); !enabled.AsBool() {
		return
	}
	t.busy.Lock()
	defer t.busy.Unlock()
	t.passes++
	now := t.data.Clock.Now()
	s := n.Store()
	var todo []string
	s.Latest().Colls("", func(c *store.Coll) bool {
		if len(expiries(c)) > 0 {
			todo = append(todo, c.NS)
		}
		return true
	})
	for _, ns := range todo {
		if t.ended.Load() {
			return
		}
		var ts bson.Timestamp
		deleted := 0
		steps := t.meter()
		err := s.Write(func(tx *store.Tx) error {
			tx.Count(steps)
			c := tx.Coll(ns)
			if c == nil {
				return nil
			}
			for _, e := range expiries(c) {
				c, deleted = e.run(tx, c, now, deleted, steps)
			}
			ts = tx.TS()
			return nil
		})
		if err != nil {
			return
		}
		if t.deleted += int64(deleted); deleted > 0 {
			t.data.Wrote(ts)
		}
	}
}

// run deletes what has expired by the rule.
func (e expiry) run(tx *store.Tx, c *store.Coll, now time.Time, deleted int, m *work.Meter) (*store.Coll, int) {
	filter := bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc(e.path, bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendDateTime(d.B, "$lte", bson.NewDateTime(now.Add(-e.after)))
		}))
	})
	f, err := query.ParseFilter(filter, nil)
	if err != nil {
		return c, deleted
	}
	scan := store.NewScan(c, false, nil)
	if e.index != nil {
		ranges, score := e.index.Ranges(f, true)
		if score == 0 {
			ranges = []store.Range{{}}
		}
		scan = store.NewIndexScan(c, e.index, false, ranges)
	}
	for rid, doc, ok := scan.Next(); ok; rid, doc, ok = scan.Next() {
		m.Do(1)
		if match, err := f.Match(doc); err != nil || !match {
			continue
		}
		if next, err := tx.Delete(c, rid, doc); err == nil {
			c = next
			deleted++
		}
	}
	return c, deleted
}
