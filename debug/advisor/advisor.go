// Package advisor watches the commands of a client and says, with the line of the program that sent
// them, what will hurt in production: queries without an index, sorts in memory, operations without
// a deadline, concerns that are weaker than the program has declared, the same query again and
// again in a loop, arrays that grow without bound, and what a declared server version or the Stable
// API lacks.
//
// In tests, Strict opens a client whose findings fail the test:
//
//	client := advisor.Strict(t, deployment.URI(), advisor.Options{})
//
// In development, Open opens one whose findings are logged, and shown by the Advisor, which is an
// http.Handler:
//
//	client, a, err := advisor.Open(uri, advisor.Options{})
//	http.Handle("/debug/advisor", a)
//
// It asks the server for the plan of each kind of query once (explain), on a client of its own, and
// walks the stack of each operation: it is not for production. A program that does not use it pays
// nothing.
package advisor

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/exec"
	"allium/internal/option"
)

// Rule is what a finding breaks.
type Rule string

// The rules.
const (
	// RuleIndex: a query reads the whole collection (COLLSCAN) although it has a filter.
	RuleIndex Rule = "index"
	// RuleSort: the server sorts in memory (SORT), since no index has the order.
	RuleSort Rule = "sort"
	// RuleDeadline: an operation has neither a Timeout nor a context with a deadline.
	RuleDeadline Rule = "deadline"
	// RuleConcern: a read or write concern is weaker than Options says.
	RuleConcern Rule = "concern"
	// RuleRepeated: one line sends the same shape of query again and again, where one query for all
	// would do (N+1).
	RuleRepeated Rule = "repeated"
	// RuleGrowth: $push or $addToSet without a $slice made an array long.
	RuleGrowth Rule = "growth"
	// RuleDeclared: the deployment of Options.Declared does not know the command or part of it.
	RuleDeclared Rule = "declared"
)

// Options say what is expected of a program. The zero value has all rules that need no declaration.
// Open copies them.
type Options struct {
	// Exempt lists rules that are not looked at: by the name of a collection, by database and
	// collection ("shop.orders"), by the program's source file or its line ("seed.go",
	// "seed.go:12"), or for all by "*". Small collections that are meant to be read as a whole
	// belong here.
	Exempt map[string][]Rule
	// WriteConcern and ReadConcern are the weakest that are allowed. Nil: any. A command without a
	// concern has the server's default: the write concern w: "majority" from version 5.0 on and w:
	// 1 before, and the read concern "local". In a transaction its own counts.
	WriteConcern *consistency.WriteConcern
	ReadConcern  *consistency.ReadConcern
	// Repeats is how often a line may send the same shape of query, from the same place in its
	// callers, Within a time. Zero: 10. Negative: any number.
	Repeats int
	// Within is the time in which Repeats counts. Zero: one second, and with Strict the whole test.
	Within time.Duration
	// MostElements is how long an array may become by $push and $addToSet without $slice. Zero:
	// 100. Negative: any length.
	MostElements int
	// Declared is a client of a deployment as the program declares that it needs no more than: of
	// mongotest at the oldest version that is supported, or with a strict ServerAPI. Each kind of
	// command is run there once, on whatever data it has: it must be a deployment for nothing else.
	// Nil: nothing is compared.
	Declared *allium.Client
	// Report is told of each finding, on the goroutine of the operation, when it is found first.
	// Nil: slog.Warn.
	Report func(Finding)
}

// Finding is one thing that will hurt, at one line.
type Finding struct {
	Rule Rule
	// File and Line are the program's: of the call nearest to the driver that is not the driver's.
	// File is empty if it was none of the program's goroutines.
	File string
	Line int
	// Command and Namespace are those of the operation, Shape is its filter or pipeline without
	// values.
	Command, Namespace, Shape string
	// Text says what is wrong and what helps.
	Text string
	// Count is how often it was found.
	Count int
}

// String returns the finding on one line.
func (f Finding) String() string {
	at := "unknown"
	if f.File != "" {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	shape := ""
	if f.Shape != "" {
		shape = " " + f.Shape
	}
	return fmt.Sprintf("%s: %s: %s %s%s: %s", at, f.Rule, f.Command, f.Namespace, shape, f.Text)
}

// Advisor collects findings. It is safe for concurrent use.
type Advisor struct {
	o     Options
	plain *allium.Client // asks for plans

	mu       sync.Mutex
	pending  map[pending]*operation
	findings []*Finding
	planned  map[string]bool
	repeats  map[string]*repeated
	major    int32 // wire version, 0 if not known yet
}

// pending names a command that is on its way.
type pending struct {
	addr       string
	connection int64
	request    int64
}

// operation is a command that is on its way.
type operation struct {
	caller   caller
	name     string
	db, coll string
	shape    string
	cmd      bson.Raw
}

// Open opens a client that an advisor watches. The Advisor must be closed, after the client. A
// CommandMonitor of the options is told of commands, too.
func Open(uri string, o Options, opts ...allium.ClientOptions) (*allium.Client, *Advisor, error) {
	exempt := map[string][]Rule{}
	for key, rules := range o.Exempt {
		exempt[key] = slices.Clone(rules)
	}
	o.Exempt, o.WriteConcern, o.ReadConcern = exempt, option.Copy(o.WriteConcern), option.Copy(o.ReadConcern)
	a := &Advisor{o: o, pending: map[pending]*operation{}, planned: map[string]bool{}, repeats: map[string]*repeated{}}
	if a.o.Repeats == 0 {
		a.o.Repeats = 10
	}
	if a.o.Within == 0 {
		a.o.Within = time.Second
	}
	if a.o.MostElements == 0 {
		a.o.MostElements = 100
	}
	if a.o.Report == nil {
		a.o.Report = func(f Finding) {
			slog.Warn("allium advisor: "+f.Text, "rule", f.Rule, "file", f.File, "line", f.Line, "command", f.Command,
				"namespace", f.Namespace, "shape", f.Shape)
		}
	}
	quiet := append(slices.Clone(opts), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{},
		PoolMonitor:   &event.PoolMonitor{},
		ServerMonitor: &event.ServerMonitor{}, MinPoolSize: new(int), Warm: new(int), SlowOperation: -1})
	for i := range quiet {
		quiet[i].Encryption, quiet[i].Tracing = nil, nil
	}
	var err error
	if a.plain, err = allium.Open(uri, quiet...); err != nil {
		return nil, nil, err
	}
	var theirs *event.CommandMonitor
	for _, o := range opts {
		if o.CommandMonitor != nil {
			theirs = o.CommandMonitor
		}
	}
	client, err := allium.Open(uri,
		append(slices.Clone(opts), allium.ClientOptions{CommandMonitor: a.monitor(theirs)})...)
	if err != nil {
		a.Close(context.Background())
		return nil, nil, err
	}
	return client, a, nil
}

// Close closes the client that asks for plans. What was found stays.
func (a *Advisor) Close(ctx context.Context) error { return a.plain.Close(ctx) }

// Findings returns what was found, in the order in which it was found first.
func (a *Advisor) Findings() []Finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]Finding, len(a.findings))
	for i, f := range a.findings {
		out[i] = *f
	}
	return out
}

// monitor returns the listener that watches, in front of the program's own.
func (a *Advisor) monitor(next *event.CommandMonitor) *event.CommandMonitor {
	if next == nil {
		next = &event.CommandMonitor{}
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStarted) {
			a.started(ctx, e)
			if next.Started != nil {
				next.Started(ctx, e)
			}
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceeded) {
			a.succeeded(&e.CommandInfo)
			if next.Succeeded != nil {
				next.Succeeded(ctx, e)
			}
		},
		Failed: func(ctx context.Context, e *event.CommandFailed) {
			a.taken(&e.CommandInfo)
			if next.Failed != nil {
				next.Failed(ctx, e)
			}
		},
	}
}

// inner are commands that the driver sends by itself or for an operation that was looked at.
var inner = []string{"getMore", "killCursors", "endSessions", "abortTransaction", "commitTransaction", "explain"}

// started looks at what can be seen before the command is sent.
func (a *Advisor) started(ctx context.Context, e *event.CommandStarted) {
	op := &operation{caller: callerOf(), name: e.CommandName, db: e.DatabaseName,
		shape: strings.Clone(exec.Shape(e.CommandName, e.Command))}
	for _, v := range e.Command.All() {
		coll, _ := v.StringValue()
		op.coll = strings.Clone(coll)
		break
	}
	if op.name == "commitTransaction" {
		a.concerns(op, e.Command)
	}
	if slices.Contains(inner, op.name) || op.caller.file == "" {
		return
	}
	if _, bounded := ctx.Deadline(); !bounded && e.Command.Lookup("maxTimeMS").IsZero() {
		a.found(op, RuleDeadline, "it has no deadline: set Timeout in the options of the client, or give it a context that ends")
	}
	a.concerns(op, e.Command)
	a.repeated(op, e)
	op.cmd = slices.Clone(e.Command)
	a.mu.Lock()
	a.pending[pendingOf(&e.CommandInfo)] = op
	a.mu.Unlock()
}

func pendingOf(e *event.CommandInfo) pending {
	return pending{e.Addr, e.DriverConnectionID, e.RequestID}
}

// taken returns the operation of a command that has ended, nil if it is not looked at.
func (a *Advisor) taken(e *event.CommandInfo) *operation {
	a.mu.Lock()
	defer a.mu.Unlock()
	op := a.pending[pendingOf(e)]
	delete(a.pending, pendingOf(e))
	return op
}

// succeeded looks at what the server can tell about a command that it has run.
func (a *Advisor) succeeded(e *event.CommandInfo) {
	op := a.taken(e)
	if op == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, one := range op.statements() {
		a.plans(ctx, one)
		a.growth(ctx, one)
	}
	a.declared(ctx, op)
}

// exempt reports whether a rule is not looked at.
func (a *Advisor) exempt(op *operation, rule Rule) bool {
	file := filepath.Base(op.caller.file)
	for _, key := range []string{"*", op.coll, op.db + "." + op.coll, file,
		fmt.Sprintf("%s:%d", file, op.caller.line)} {
		if slices.Contains(a.o.Exempt[key], rule) {
			return true
		}
	}
	return false
}

// found takes up a finding.
func (a *Advisor) found(op *operation, rule Rule, text string) {
	if a.exempt(op, rule) {
		return
	}
	f := &Finding{Rule: rule, File: op.caller.file, Line: op.caller.line, Command: op.name,
		Namespace: strings.TrimSuffix(op.db+"."+op.coll, "."), Shape: op.shape, Text: text, Count: 1}
	a.mu.Lock()
	for _, old := range a.findings {
		if old.Rule == f.Rule && old.File == f.File && old.Line == f.Line && old.Namespace == f.Namespace &&
			old.Command == f.Command && old.Shape == f.Shape {
			old.Count++
			a.mu.Unlock()
			return
		}
	}
	a.findings = append(a.findings, f)
	a.mu.Unlock()
	a.o.Report(*f)
}
