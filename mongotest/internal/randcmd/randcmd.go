// Package randcmd finds faults of mongotest without another server to compare it with: it makes
// random collections, indexes and commands, and checks what must hold whatever a command does. A
// plan with an index finds what a scan finds, a count counts what a find finds, a pipeline that the
// optimizer may not touch answers as one that it may, a view as its stages, findAndModify writes
// what an update writes, nothing ends in an internal error or never. What breaks such a rule is
// shrunk to the smallest case that still breaks it.
package randcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// Case is a collection and a command on it.
type Case struct {
	Docs, Other a // of the collections c and o
	Indexes     a // of c
	Collation   d // of c; nil: none
	Command     d
}

// Finding is a case that breaks a rule.
type Finding struct {
	Case Case
	Rule string // its name
	Text string // what was seen
	Seed uint64 // of the case before it was shrunk
}

func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (seed %d): %s\n", f.Rule, f.Seed, f.Text)
	for _, part := range []struct {
		name string
		v    any
	}{{"docs", f.Case.Docs}, {"other", f.Case.Other}, {"indexes", f.Case.Indexes}, {"collation", f.Case.Collation},
		{"command", f.Case.Command}} {
		if list, ok := part.v.(a); ok && len(list) == 0 || part.name == "collation" && f.Case.Collation == nil {
			continue
		}
		fmt.Fprintf(&b, "  %s: %s\n", part.name, show(part.v))
	}
	return b.String()
}

func show(v any) string {
	raw, err := bson.MarshalValue(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return raw.String()
}

// Checker runs cases on a deployment of its own.
type Checker struct {
	d        *mongotest.Deployment
	conn     net.Conn
	sharded  bool
	modern   bool      // the version is 5.0 or later
	Commands int64     // sent so far
	alter    func(d) d // a test makes commands wrong; nil: none
}

// replyTimeout is after how long a command counts as one that never ends; commands have a limit of
// a tenth of it.
const replyTimeout = time.Minute

// Open starts a deployment. A sharded one has c sharded by its hashed _id.
func Open(version string, sharded bool) (*Checker, error) {
	topology := mongotest.Standalone()
	if sharded {
		topology = mongotest.Sharded(2, 1)
	}
	dep, err := mongotest.Open(topology, mongotest.Version(version), mongotest.InMemory())
	if err != nil {
		return nil, err
	}
	conn, err := dep.DialContext(context.Background(), "tcp", dep.Hosts()[0])
	if err != nil {
		dep.Stop()
		return nil, err
	}
	return &Checker{d: dep, conn: conn, sharded: sharded, modern: !strings.HasPrefix(version, "4.")}, nil
}

// Close stops the deployment.
func (c *Checker) Close() {
	c.conn.Close()
	c.d.Stop()
}

// Run makes and checks one case. What it finds is shrunk.
func (c *Checker) Run(seed uint64) (*Finding, error) {
	g := &gen{rand.New(rand.NewPCG(seed, 1)), c.modern}
	cs := g.makeCase(c.sharded)
	rule, text, err := c.check(cs)
	if err != nil || rule == "" {
		return nil, err
	}
	f := &Finding{Case: cs, Rule: rule, Text: text, Seed: seed}
	return f, c.shrink(f)
}

func (g *gen) makeCase(sharded bool) Case {
	cs := Case{Collation: nil, Docs: a{}, Other: a{}, Indexes: a{}}
	for i := range g.IntN(9) {
		cs.Docs = append(cs.Docs, g.document(i+1))
	}
	for i := range g.IntN(3) {
		cs.Other = append(cs.Other, g.document(i+1))
	}
	for i := range g.IntN(3) {
		cs.Indexes = append(cs.Indexes, g.index(fmt.Sprint("ix", i)))
	}
	if g.one(8) {
		cs.Collation = g.collation()
	}
	cs.Command = g.command()
	if sharded && cs.Command[0].Key != "aggregate" && cs.Command[0].Key != "find" {
		cs.Command = d{e("aggregate", "c"), e("pipeline", g.stages(1)), e("cursor", d{})}
	}
	return cs
}

func (g *gen) command() d {
	var cmd d
	opt := func(n int, key string, v any) {
		if g.one(n) {
			cmd = append(cmd, e(key, v))
		}
	}
	switch g.IntN(12) {
	case 0, 1, 2, 3:
		cmd = d{e("find", "c"), e("filter", g.filter(2))}
		opt(2, "sort", g.sort())
		opt(3, "projection", g.projection())
		opt(4, "skip", int32(g.IntN(3)))
		opt(4, "limit", int32(g.IntN(4)))
	case 4, 5, 6:
		cmd = d{e("aggregate", "c"), e("pipeline", g.stages(1)), e("cursor", d{})}
	case 7, 8:
		one := d{e("q", g.filter(1)), e("u", g.update())}
		for _, key := range []string{"multi", "upsert"} {
			if g.one(3) {
				one = append(one, e(key, true))
			}
		}
		if strings.Contains(show(one), "$[x]") {
			one = append(one, e("arrayFilters", a{d{e(pick(g, "x", "x.a"), g.condition(1))}}))
		}
		return d{e("update", "c"), e("updates", a{one})}
	case 9:
		return d{e("delete", "c"), e("deletes", a{d{e("q", g.filter(2)), e("limit", int32(g.IntN(2)))}})}
	case 10:
		cmd = d{e("distinct", "c"), e("key", g.path()), e("query", g.filter(1))}
	case 11:
		cmd = d{e("findAndModify", "c"), e("query", g.filter(1))}
		if g.one(3) {
			cmd = append(cmd, e("remove", true))
		} else {
			cmd = append(cmd, e("update", g.update()))
			opt(2, "new", true)
			opt(4, "upsert", true)
		}
		opt(2, "sort", g.sort())
		opt(3, "fields", g.projection())
	}
	if col := g.collation(); col != nil {
		cmd = append(cmd, e("collation", col))
	}
	return cmd
}

// run sends a command, to the database t if it names none.
func (c *Checker) run(cmd d) (bson.Raw, error) {
	c.Commands++
	cmd = slices.Clone(cmd)
	if c.alter != nil {
		cmd = c.alter(cmd)
	}
	if _, ok := get(cmd, "$db"); !ok {
		cmd = append(cmd, e("$db", "t"))
	}
	if name := cmd[0].Key; name != "getMore" && name != "killCursors" {
		cmd = append(cmd, e("maxTimeMS", int32(replyTimeout.Milliseconds()/10)))
	}
	doc, err := bson.Marshal(cmd)
	if err != nil {
		return nil, err
	}
	c.conn.SetDeadline(time.Now().Add(replyTimeout))
	if _, err := c.conn.Write(wire.FinishMessage(append(wire.AppendMsg(nil, wire.NextRequestID(), 0, 0), doc...),
		0)); err != nil {
		return nil, fmt.Errorf("%s: %w", show(cmd), err)
	}
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c.conn, head); err != nil {
		return nil, fmt.Errorf("%s is not answered: %w", show(cmd), err)
	}
	h, err := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
	if err != nil {
		return nil, err
	}
	msg := append(head, make([]byte, h.Length-wire.HeaderLen)...)
	if _, err := io.ReadFull(c.conn, msg[wire.HeaderLen:]); err != nil {
		return nil, err
	}
	m, err := wire.ParseMsg(msg)
	if err != nil {
		return nil, err
	}
	if why := oddReply(m.Body); why != "" {
		return nil, &brokenRule{"answers", fmt.Sprintf("%s: %s is answered by %v", why, show(cmd), m.Body)}
	}
	return m.Body, nil
}

// brokenRule is an error that is a finding.
type brokenRule struct{ rule, text string }

func (b *brokenRule) Error() string { return b.rule + ": " + b.text }

// oddReply says what is wrong with a reply to any command.
func oddReply(r bson.Raw) string {
	if err := r.Validate(); err != nil && !strings.Contains(err.Error(), "is not valid UTF-8") { // texts show bytes
		return err.Error()
	}
	problem := func(doc bson.Raw) string {
		text, _ := doc.Lookup("errmsg").StringValue()
		code, ok := doc.Lookup("code").AsInt64()
		switch {
		case text == "":
			return "an error without a text"
		case ok && code == 1:
			return "an internal error"
		case ok && code == 50:
			return "out of time"
		}
		return ""
	}
	if !r.Lookup("ok").AsBool() {
		return problem(r)
	}
	for v := range bson.Raw(r.Lookup("writeErrors").Value).Values() {
		if why := problem(bson.Raw(v.Value)); why != "" {
			return why
		}
	}
	return ""
}

// shrink makes a finding as small as it gets.
func (c *Checker) shrink(f *Finding) error {
	for budget := 3000; budget > 0; {
		smaller := false
		for _, cs := range shrunk(f.Case) {
			if budget--; budget == 0 {
				break
			}
			rule, text, err := c.check(cs)
			if err != nil {
				return err
			}
			if rule == f.Rule {
				f.Case, f.Text, smaller = cs, text, true
				break
			}
		}
		if !smaller {
			return nil
		}
	}
	return nil
}

// shrunk returns cases that are a little smaller.
func shrunk(cs Case) []Case {
	var out []Case
	for _, part := range []func(*Case) *a{func(c *Case) *a {
		return &c.Docs
	}, func(c *Case) *a { return &c.Other }, func(c *Case) *a { return &c.Indexes }} {
		for _, v := range smaller(*part(&cs), 1) {
			next := cs
			*part(&next) = v.(a)
			out = append(out, next)
		}
	}
	if cs.Collation != nil {
		next := cs
		next.Collation = nil
		out = append(out, next)
	}
	for i := len(cs.Command) - 1; i >= 1; i-- {
		next := cs
		next.Command = slices.Delete(slices.Clone(cs.Command), i, i+1)
		out = append(out, next)
		for _, v := range smaller(cs.Command[i].Value, 0) {
			next := cs
			next.Command = slices.Clone(cs.Command)
			next.Command[i].Value = v
			out = append(out, next)
		}
	}
	return out
}

// smaller returns values that are a little smaller. The items of a list stay in it if keep is set.
func smaller(v any, keep int) []any {
	var out []any
	switch v := v.(type) {
	case d:
		for i := range v {
			out = append(out, slices.Delete(slices.Clone(v), i, i+1))
		}
		if len(v) == 1 && keep == 0 {
			if _, ok := v[0].Value.(a); !ok || strings.HasPrefix(v[0].Key, "$") {
				out = append(out, v[0].Value)
			}
		}
		for i := range v {
			for _, s := range smaller(v[i].Value, 0) {
				next := slices.Clone(v)
				next[i].Value = s
				out = append(out, next)
			}
		}
	case a:
		for i := range v {
			out = append(out, slices.Delete(slices.Clone(v), i, i+1))
		}
		for i := range v {
			if keep == 0 {
				out = append(out, v[i])
			}
			for _, s := range smaller(v[i], keep) {
				next := slices.Clone(v)
				next[i] = s
				out = append(out, next)
			}
		}
	case int32:
		if v != 1 && v != 0 {
			out = append(out, int32(1))
		}
	case string:
		if v != "a" && !strings.HasPrefix(v, "$") && v != "c" && v != "b" {
			out = append(out, "a")
		}
		if i := strings.LastIndexByte(v, '.'); i > 0 && i < len(v)-1 {
			out = append(out, v[:i])
		}
	case bool, nil:
	default:
		out = append(out, int32(1))
	}
	return out
}

// check sets a case up and looks at all rules that apply to its command.
func (c *Checker) check(cs Case) (rule, text string, err error) {
	switch cs.Command[0].Key {
	case "find":
		err = c.checkFind(cs)
	case "aggregate":
		err = c.checkAggregate(cs)
	case "update":
		err = c.checkUpdate(cs)
	case "delete":
		err = c.checkDelete(cs)
	case "distinct":
		err = c.checkDistinct(cs)
	case "findAndModify":
		err = c.checkFindAndModify(cs)
	}
	if broken, ok := errors.AsType[*brokenRule](err); ok {
		return broken.rule, broken.text, nil
	}
	return "", "", err
}
