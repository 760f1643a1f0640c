package campaign

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/norace"
)

// TestHistories runs a short history on each topology. The command runs them by the hour.
func TestHistories(t *testing.T) {
	// Goroutines that wake at the same instant run one after the other.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, topology := range Topologies {
		t.Run(string(topology), func(t *testing.T) {
			p := NewPlan(Seeds(1)(), topology, 0)
			p.Length, p.Think = 2*time.Minute, time.Second // enough here
			if norace.Detecting {
				p.Length = time.Minute
			}
			p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.At > p.Length })
			o := Run(t, p, false)
			if len(o.Violations) > 0 {
				o.Describe(os.Stderr)
				t.Errorf("history %d breaks a promise", p.Seed)
			}
			if o.Stats.Acked < 100 || o.Stats.Events < 50 || len(o.Stats.Work) != len(kinds) ||
				o.Stats.Handled < 10 || o.Stats.Migrated < 2 {
				t.Errorf("the history hardly did anything: %+v", o.Stats)
			}
		})
	}
}

// Certificates are replaced by good and bad ones while clients run, and connections break, so that
// new ones are made.
func TestCertificates(t *testing.T) {
	norace.Skip(t, "most of it is cryptography, and TestHistories has the same goroutines")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPlan(2, ReplSet, 0)
	p.Length, p.Think, p.TLS, p.Auth, p.Steps = time.Minute, time.Second, true, true, nil
	for i := range 9 {
		at := time.Duration(1+6*i) * time.Second
		p.Steps = append(p.Steps, Step{At: at, For: 5 * time.Second, Kind: "certificate", N: i}, Step{At: at + time.Second, Kind: "closeConnections", Node: i % 3})
	}
	o := Run(t, p, false)
	if len(o.Violations) > 0 {
		o.Describe(os.Stderr)
		t.Errorf("history %d breaks a promise", p.Seed)
	}
	if o.Stats.Acked < 100 || o.Stats.Errors["ConnectionError"]+o.Stats.Errors["SelectionError"]+o.Stats.Errors["PoolClearedError"]+o.Stats.Errors["TimeoutError"] == 0 {
		t.Errorf("nobody noticed the certificates: %+v", o.Stats)
	}
}

// Passwords are replaced while clients run, and connections break, so that new ones are made:
// nobody who asks for the password notices.
func TestPasswords(t *testing.T) {
	norace.Skip(t, "most of it is cryptography, and TestHistories has the same goroutines")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, topology := range []Topology{ReplSet, LB} {
		t.Run(string(topology), func(t *testing.T) {
			p := NewPlan(3, topology, 0)
			p.Length, p.Think, p.TLS, p.Auth, p.Steps = time.Minute, time.Second, false, true, nil
			for i := range p.Clients {
				p.Clients[i].Asks = true
			}
			for i := range 9 {
				at := time.Duration(1+6*i) * time.Second
				p.Steps = append(p.Steps, Step{At: at, For: 3 * time.Second, Kind: "rotate"}, Step{At: at + time.Second, Kind: "closeConnections", Node: i % 3}, Step{At: at + 4*time.Second, Kind: "closeConnections", Node: (i + 1) % 3})
			}
			o := Run(t, p, false)
			if len(o.Violations) > 0 {
				o.Describe(os.Stderr)
				t.Errorf("history %d breaks a promise", p.Seed)
			}
			if o.Stats.Acked < 100 || o.Stats.Asked < 2*len(p.Clients) || o.Stats.Errors["AuthError"] > 0 {
				t.Errorf("nobody asked for a password: %+v", o.Stats)
			}
		})
	}
}

// Authorities and certificates are replaced on disk and at the servers and key services while
// clients work, in real time and on TCP: nobody notices, but for the time in which nothing fits.
func TestRotation(t *testing.T) {
	p := NewPlan(1, ReplSet, 4*time.Second)
	p.TLS, p.Auth, p.Lag, p.Election = true, false, 0, 0
	p.Actors = nil
	for i, kind := range []string{"counter", "inserter", "follower", "scanner", "keys", "keys"} {
		p.Actors = append(p.Actors, ActorPlan{ID: i, Kind: kind, Client: i % 3, Seed: uint64(i)})
	}
	p.Steps = []Step{
		{At: 100 * time.Millisecond, For: 100 * time.Millisecond, Kind: "renew", N: 3},
		{At: 3500 * time.Millisecond, For: 300 * time.Millisecond, Kind: "cutOff", N: 3},
	}
	o := Run(t, p, false)
	if len(o.Violations) > 0 {
		o.Describe(os.Stderr)
		t.Errorf("history %d breaks a promise", p.Seed)
	}
	if s := o.Stats; s.Acked == 0 || s.Work["keys"] == 0 || s.Rotated["servers"] == 0 || s.Rotated["key services"] == 0 {
		t.Errorf("the history hardly did anything: %+v", s)
	}
}

// A call that met a window in which certificates are refused may say so, and no other.
func TestRotationWindows(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	r := &rotation{w: &world{}, windows: []*window{{from: at(100), to: at(110)}, {from: at(200)}}}
	for _, tc := range []struct {
		start, end int
		excused    bool
	}{{90, 99, false}, {90, 101, true}, {105, 106, true}, {112, 150, true}, {114, 150, false}, {150, 205, true}, {300, 301, true}} {
		if got := r.excuses(at(tc.start), at(tc.end)); got != tc.excused {
			t.Errorf("from %d to %d: excused %v", tc.start, tc.end, got)
		}
	}
	for text, refused := range map[string]bool{
		"tls: failed to verify certificate: x509: certificate signed by unknown authority": true,
		"server selection: 127.0.0.1:1: remote error: tls: unknown certificate authority":  true,
		"remote error: tls: certificate required":                                          true,
		"remote error: tls: bad record MAC":                                                false,
		"read: connection reset by peer":                                                   false,
	} {
		if got := certificateRefused(errors.New(text)); got != refused {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A seed fixes the plan, and each operation's numbers do not depend on those before it.
func TestPlan(t *testing.T) {
	one, two := NewPlan(7, Sharded, 0), NewPlan(7, Sharded, 0)
	if !reflect.DeepEqual(one, two) {
		t.Error("two plans of one seed differ")
	}
	if reflect.DeepEqual(one, NewPlan(8, Sharded, 0)) {
		t.Error("the plans of two seeds are the same")
	}
	faults := map[string]bool{}
	for seed := range uint64(200) {
		for _, topology := range Topologies {
			p := NewPlan(seed, topology, 0)
			for _, s := range p.Steps {
				faults[s.Kind] = true
				if s.At > p.Length {
					t.Fatalf("a step after the end: %v", s)
				}
			}
			for _, s := range NewPlan(seed, topology, 20*time.Second).Steps {
				faults[s.Kind] = true
			}
		}
	}
	for _, kind := range slices.Concat(everywhere, replicas, clusters, []string{"rotate", "certificate", "renew", "cutOff"}) {
		if !faults[kind] && kind != "otherError" {
			t.Errorf("no plan has the step %s", kind)
		}
	}
}

// reduce finds the two elements that fail together.
func TestReduce(t *testing.T) {
	all := make([]int, 100)
	for i := range all {
		all[i] = i
	}
	runs := 0
	got := reduce(all, func(s []int) bool {
		runs++
		return slices.Contains(s, 17) && slices.Contains(s, 83)
	})
	if !slices.Equal(got, []int{17, 83}) || runs > 200 {
		t.Errorf("%v after %d runs", got, runs)
	}
	if got := reduce(all, func([]int) bool { return true }); len(got) != 0 {
		t.Errorf("%v remains of what fails without anything", got)
	}
}

// Shrink leaves only the steps and actors without which the violation is another one.
func TestShrink(t *testing.T) {
	p := NewPlan(3, ReplSet, 0)
	key, other := p.Steps[len(p.Steps)/2], p.Steps[0]
	run := func(p *Plan) *Outcome {
		o := &Outcome{Plan: p}
		has := func(s Step) bool { return slices.ContainsFunc(p.Steps, func(t Step) bool { return t.At == s.At }) }
		if has(key) && slices.ContainsFunc(p.Actors, func(a ActorPlan) bool { return a.Kind == "files" }) {
			o.Violations = append(o.Violations, fmt.Sprintf("files: file %d is gone", len(p.Steps)))
		}
		if has(other) {
			o.Violations = append(o.Violations, "another thing")
		}
		return o
	}
	first := run(p)
	slices.Sort(first.Violations)
	slices.Reverse(first.Violations)
	got := Shrink(first, 1, time.Now().Add(time.Hour), run)
	if len(got.Plan.Steps) != 1 || got.Plan.Steps[0].At != key.At || len(got.Plan.Actors) != 1 || got.Plan.Actors[0].Kind != "files" {
		t.Errorf("%v and %v remain", got.Plan.Steps, got.Plan.Actors)
	}
}

// The judges find what they are there to find.
func TestJudgeLists(t *testing.T) {
	push := func(o outcome, atomic bool, entries ...entry) *record {
		return &record{name: "w", outcome: o, atomic: atomic, writes: entries}
	}
	read := func(atomic bool, reads ...seen) *record {
		return &record{name: "r", outcome: acked, atomic: atomic, reads: reads}
	}
	for name, tc := range map[string]struct {
		all   []*record
		final map[int][]int32
		want  string // in what is found; empty: nothing is
	}{
		"fine":           {[]*record{push(acked, true, entry{0, 1}, entry{1, 2}), read(true, seen{0, []int32{1}}, seen{1, []int32{2}})}, map[int][]int32{0: {1}, 1: {2}}, ""},
		"lost":           {[]*record{push(acked, false, entry{0, 1})}, map[int][]int32{}, "acknowledged, but only 0 of its 1"},
		"weak and lost":  {[]*record{push(weak, false, entry{0, 1})}, map[int][]int32{}, ""},
		"unknown":        {[]*record{push(unknown, false, entry{0, 1}, entry{0, 2})}, map[int][]int32{0: {2}}, ""},
		"twice":          {[]*record{push(unknown, false, entry{0, 1})}, map[int][]int32{0: {1, 1}}, "applied 2 times"},
		"aborted":        {[]*record{push(absent, true, entry{0, 1})}, map[int][]int32{0: {1}}, "aborted, but 1"},
		"in part":        {[]*record{push(unknown, true, entry{0, 1}, entry{1, 2})}, map[int][]int32{0: {1}}, "applied in part"},
		"dirty read":     {[]*record{push(absent, true, entry{0, 1}), read(false, seen{0, []int32{1}})}, map[int][]int32{}, "never left there"},
		"gap":            {[]*record{push(acked, false, entry{0, 1}, entry{0, 2}), read(false, seen{0, []int32{2}})}, map[int][]int32{0: {1, 2}}, "never left there"},
		"fractured":      {[]*record{push(acked, true, entry{0, 1}, entry{1, 2}), read(true, seen{0, []int32{1}}, seen{1, nil})}, map[int][]int32{0: {1}, 1: {2}}, "in part"},
		"not repeatable": {[]*record{push(acked, false, entry{0, 1}), read(true, seen{0, nil}, seen{0, []int32{1}})}, map[int][]int32{0: {1}}, "twice and saw 0 and 1"},
		"own last": {[]*record{push(acked, false, entry{0, 1}), {name: "t", outcome: acked, atomic: true, writes: []entry{{0, 2}}, reads: []seen{{0, []int32{2, 1}}}}},
			map[int][]int32{0: {1, 2}}, "after its own"},
	} {
		expect(t, name, judgeLists(tc.all, tc.final), tc.want)
	}
}

func expect(t *testing.T, name string, found []string, want string) {
	t.Helper()
	if want == "" && len(found) > 0 || want != "" && !strings.Contains(strings.Join(found, "\n"), want) {
		t.Errorf("%s: found %q, want %q", name, found, want)
	}
}

func TestJudgeCounter(t *testing.T) {
	at := func(start, end int, o outcome, value int64) *increment {
		return &increment{name: fmt.Sprint("i", value), start: time.Unix(int64(start), 0), end: time.Unix(int64(end), 0), outcome: o, value: value}
	}
	expect(t, "fine", judgeCounter([]*increment{at(0, 1, acked, 1), at(0, 5, unknown, 0), at(2, 3, acked, 3)}, 3), "")
	expect(t, "lost", judgeCounter([]*increment{at(0, 1, acked, 1), at(1, 2, acked, 2)}, 1), "at 1 after 2")
	expect(t, "twice", judgeCounter([]*increment{at(0, 1, acked, 1)}, 2), "at 2 after 1")
	expect(t, "same value", judgeCounter([]*increment{at(0, 1, acked, 1), at(0, 1, acked, 1)}, 2), "both got")
	expect(t, "order", judgeCounter([]*increment{at(0, 1, acked, 2), at(2, 3, acked, 1)}, 2), "began after")
}

func TestJudgeEvents(t *testing.T) {
	all := map[string]*inserted{"a": {outcome: acked, actor: 1, seq: 1}, "b": {outcome: acked, actor: 1, seq: 2}, "c": {outcome: unknown, actor: 2}}
	there := map[string]int{"a": 1, "b": 1}
	expect(t, "fine", judgeInserts(all, there), "")
	expect(t, "missing", judgeInserts(all, map[string]int{"a": 1}), "insert of b is missing")
	expect(t, "twice", judgeInserts(all, map[string]int{"a": 2, "b": 1}), "there 2 times")
	expect(t, "stranger", judgeInserts(all, map[string]int{"a": 1, "b": 1, "x": 1}), "nobody inserted")
	got := func(ended bool, ids ...string) *followed {
		f := &followed{name: "f", events: ids, ended: ended}
		for i := range ids {
			f.times = append(f.times, bson.Timestamp{T: uint32(i)})
		}
		return f
	}
	expect(t, "fine", judgeFollower(got(true, "a", "b"), all, there), "")
	expect(t, "twice", judgeFollower(got(true, "a", "a", "b"), all, there), "a twice")
	expect(t, "one missing", judgeFollower(got(true, "b"), all, there), "never received")
	expect(t, "not there", judgeFollower(got(true, "a", "b", "c"), all, there), "c, which is not there")
	expect(t, "order", judgeFollower(got(true, "b", "a"), all, there), "after a later insert")
	expect(t, "no end", judgeFollower(got(false, "a", "b"), all, there), "never reached")
	late := got(true, "a", "b")
	late.times[0].T = 9
	expect(t, "time", judgeFollower(late, all, there), "out of order")
}

func TestJudgeMany(t *testing.T) {
	one := func(o outcome) []*change { return []*change{{name: "c", actor: 1, outcome: o}} }
	herd := func(docs ...[]int32) map[int][][]int32 { return map[int][][]int32{1: docs, 2: {nil}} }
	expect(t, "fine", judgeChanges(one(acked), herd([]int32{0}, []int32{0})), "")
	expect(t, "in part", judgeChanges(one(unknown), herd([]int32{0}, nil)), "")
	expect(t, "lost", judgeChanges(one(acked), herd([]int32{0}, nil)), "document 1 lacks it")
	expect(t, "twice", judgeChanges(one(unknown), herd([]int32{0, 0}, nil)), "changed document 0 2 times")
	expect(t, "stranger", judgeChanges(one(acked), map[int][][]int32{1: {{0}}, 2: {{0}}}), "another herd")

	docs := func(deleted outcome) []*heap {
		return []*heap{{name: "h", docs: map[string]outcome{"a": acked, "u": unknown, "n": absent}, deleted: deleted}}
	}
	at := func(ids ...string) map[string]bool {
		there := map[string]bool{taken: true}
		for _, id := range ids {
			there[id] = true
		}
		return there
	}
	expect(t, "fine", judgeHeaps(docs(absent), at("a", "u")), "")
	expect(t, "missing", judgeHeaps(docs(absent), at("u")), "insert of a, one of many, is missing")
	expect(t, "deleted in part", judgeHeaps(docs(unknown), at("u")), "")
	expect(t, "not deleted", judgeHeaps(docs(acked), at("a")), "a delete of many documents was acknowledged, but a is there")
	expect(t, "a late insert", judgeHeaps(docs(acked), at("u")), "")
	expect(t, "behind an error", judgeHeaps(docs(absent), at("a", "n")), "n is there, although")
	expect(t, "nobody's", judgeHeaps(docs(absent), at("a", "x")), "x is there, which nobody inserted")
}

// A transaction that is open on a server counts unless its end was lost.
func TestOpenBecause(t *testing.T) {
	id := []byte("0123456789abcdef")
	lsid, err := bson.Marshal(bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: id}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		traced  traced
		excused bool
	}{
		"nobody told the server": {traced{number: 3}, false},
		"it has answered":        {traced{number: 3, ending: 1, answered: true}, false},
		"both":                   {traced{number: 3, ending: 2, answered: true, lost: true}, false},
		"lost":                   {traced{number: 3, ending: 1, lost: true}, true},
		"a newer one":            {traced{number: 4}, true},
	} {
		w := &world{txns: map[string]*traced{string(lsid): &tc.traced}}
		if why, _ := w.openBecause(id, 3); (why != "") != tc.excused {
			t.Errorf("%s: excused with %q", name, why)
		}
	}
}

// A server that says, in whatever way, that it leaves its place ends its transactions by itself:
// what was not heard of afterwards is lost.
func TestLeavingServers(t *testing.T) {
	for name, tc := range map[string]struct {
		reply bson.D
		lost  bool
	}{
		"done":               {bson.D{{Key: "ok", Value: 1}}, false},
		"on too few members": {bson.D{{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: int32(64)}}}}, false},
		"shutting down":      {bson.D{{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: int32(91)}}}}, true},
		"stepped down":       {bson.D{{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: int32(189)}}}}, true},
	} {
		reply, err := bson.Marshal(tc.reply)
		if err != nil {
			t.Fatal(err)
		}
		txn := &traced{number: 1}
		w := &world{inTxn: map[int64]*traced{7: txn}}
		w.txnEnded(event.CommandInfo{CommandName: "insert", RequestID: 7}, reply, nil)
		if txn.lost != tc.lost {
			t.Errorf("%s: lost %t", name, txn.lost)
		}
	}
}
