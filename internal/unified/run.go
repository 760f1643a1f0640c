package unified

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/encryption"
	"allium/internal/leaks"
	"allium/mongoerr"
)

// runner runs one test.
type runner struct {
	deployment  *Deployment
	file        *File
	entities    *entities
	clients     []*clientEntity
	threads     []*thread
	failPoints  []func(ctx context.Context)
	clusterTime bson.Raw // of the initial data
}

// testTimeout bounds one test.
const testTimeout = 3 * time.Minute

// Run runs a test. A non-empty skip says why the test does not run against this deployment.
func Run(d *Deployment, f *File, t *Test) (skip string, err error) {
	if t.SkipReason != "" {
		return t.SkipReason, nil
	}
	for _, list := range [][]Requirement{f.RunOnRequirements, t.RunOnRequirements} {
		if why := anyMet(list, d.lacks); why != "" {
			return why, nil
		}
	}
	if d.shared && d.Topology == "replicaset" && d.members < 3 && slices.Contains(ofThreeMembers, f.Description) {
		return "needs a replica set of three members", nil
	}
	if f.misplaced != nil {
		return "", f.misplaced
	}
	// Not a deadline: that would be a timeout of the operations, which they behave differently
	// with.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer time.AfterFunc(testTimeout, cancel).Stop()
	r := &runner{deployment: d, file: f, entities: &entities{}}
	err = r.run(ctx, t)
	if why, ok := errors.AsType[skipped](err); ok {
		return why.Error(), nil
	}
	if e, ok := errors.AsType[*mongoerr.ServerError](err); ok {
		switch {
		case d.shared && lacksJavaScript(e):
			return "needs a server that runs JavaScript", nil
		case e.Command == "hello" && e.Code == commandNotFound:
			return "needs a server with the command hello", nil
		}
	}
	return "", err
}

const commandNotFound = 59

// lacksJavaScript reports whether a server refused mapReduce because it has no JavaScript engine:
// it was built without one, or runs with --noscripting. mongotest has one.
func lacksJavaScript(e *mongoerr.ServerError) bool {
	const noEngine, badValue = 31264, 2
	return e.Code == noEngine || e.Code == badValue && strings.Contains(e.Message, "no globalScriptEngine")
}

func (r *runner) run(ctx context.Context, t *Test) (err error) {
	spans, err := expectedSpans(t.ExpectTracing)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the test takes too long: %w", err)
		}
		if r.deployment.ended != nil {
			r.deployment.ended(r.entities.get)
		}
		r.close()
	}()
	r.deployment.killAllSessions(ctx)
	if err := r.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := r.initialData(ctx); err != nil {
		return fmt.Errorf("initial data: %w", err)
	}
	if err := r.createEntities(ctx, r.file.CreateEntities); err != nil {
		return err
	}
	err = r.operations(ctx, t.Operations)
	r.settle(ctx, t)
	for _, c := range r.clients {
		c.stopRecording()
	}
	for _, disable := range r.failPoints {
		disable(ctx)
	}
	if err != nil {
		return err
	}
	for i := range t.ExpectEvents {
		if err := r.checkEvents(&t.ExpectEvents[i]); err != nil {
			return fmt.Errorf("events of %s: %w", t.ExpectEvents[i].Client, err)
		}
	}
	for i := range t.ExpectLogMessages {
		if err := r.checkLogs(&t.ExpectLogMessages[i]); err != nil {
			return fmt.Errorf("log messages of %s: %w", t.ExpectLogMessages[i].Client, err)
		}
	}
	for i := range spans {
		if err := r.checkSpans(&spans[i]); err != nil {
			return fmt.Errorf("spans of %s: %w", spans[i].Client, err)
		}
	}
	for _, c := range r.clients {
		c.mu.Lock()
		leaked := c.leaked
		c.mu.Unlock()
		if leaked != "" {
			return errors.New(leaked)
		}
	}
	return r.checkOutcome(ctx, t.Outcome)
}

// settle waits for what follows the last operation: events and log messages that the driver
// publishes in the background, such as the log message of an event that the test waited for. In a
// bubble that is when everything rests, and on a real clock when there are as many as the test
// expects; if there never are, the comparison says what is missing.
func (r *runner) settle(ctx context.Context, t *Test) {
	if r.deployment.settle != nil {
		r.deployment.settle()
		return
	}
	for i := range t.ExpectEvents {
		want := &t.ExpectEvents[i]
		if c, err := get[*clientEntity](r.entities, want.Client); err == nil {
			c.await(ctx, settleTimeout, func() bool { return len(c.published(want.kind())) >= len(want.Events) })
		}
	}
	for i := range t.ExpectLogMessages {
		want := &t.ExpectLogMessages[i]
		if c, err := get[*clientEntity](r.entities, want.Client); err == nil {
			c.await(ctx, settleTimeout, func() bool {
				got, err := r.counted(c, want)
				return err != nil || len(got) >= len(want.Messages)
			})
		}
	}
}

// settleTimeout bounds the wait for one client's events or log messages on a real clock.
const settleTimeout = 2 * time.Second

// operations runs the operations of a test, and waits for its threads.
func (r *runner) operations(ctx context.Context, ops []Operation) error {
	var failed error
	for i := range ops {
		if err := r.operation(ctx, &ops[i]); err != nil {
			failed = fmt.Errorf("operation %d (%s): %w", i, ops[i].Name, err)
			break
		}
	}
	for _, t := range r.threads {
		if err := t.wait(); err != nil && failed == nil {
			failed = fmt.Errorf("thread: %w", err)
		}
	}
	return failed
}

// prepare does what the tests of a file without initial data rely on. A deployment that tests share
// loses what earlier files left in the collections of this one. A cluster before 5.0 gets to know
// its databases: a mongos refuses to read from others, and the tests were written where other files
// had left them behind.
func (r *runner) prepare(ctx context.Context) error {
	d := r.deployment
	if len(r.file.InitialData) > 0 {
		return nil
	}
	databases := map[string]string{} // names by entity
	for _, e := range r.file.CreateEntities {
		if name, ok := e.Lookup("database", "databaseName").StringValue(); ok && name != "admin" && name != "config" &&
			name != "local" {
			id, _ := e.Lookup("database", "id").StringValue()
			databases[strings.Clone(id)] = strings.Clone(name)
		}
	}
	if d.Topology == "sharded" && compareVersions(d.Version, "5.0") < 0 {
		for _, name := range databases {
			if _, err := d.admin.Database("admin").RunCommand(ctx,
				bson.D{{Key: "enableSharding", Value: name}}); err != nil {
				return err
			}
		}
	}
	for _, e := range r.file.CreateEntities {
		id, _ := e.Lookup("collection", "database").StringValue()
		name, ok := e.Lookup("collection", "collectionName").StringValue()
		db := databases[id]
		if !d.shared || d.lake || !ok || db == "" {
			continue
		}
		if err := d.admin.Database(
			db, allium.DatabaseOptions{WriteConcern: consistency.Majority()}).Collection(
			strings.Clone(name)).Drop(ctx); err != nil {
			return err
		}
	}
	return nil
}

// initialData fills the collections that the file names.
func (r *runner) initialData(ctx context.Context) error {
	for _, d := range r.file.InitialData {
		db := r.deployment.admin.Database(d.Database, allium.DatabaseOptions{WriteConcern: consistency.Majority()})
		coll := allium.CollectionOf[bson.Raw](db, d.Collection)
		// The two others hold what encrypted fields are found by; what is left in them changes what
		// is found.
		for _, name := range []string{d.Collection, "enxcol_." + d.Collection + ".esc",
			"enxcol_." + d.Collection + ".ecoc"} {
			if err := db.Collection(name).Drop(ctx); err != nil {
				return err
			}
		}
		create := bson.D{{Key: "create", Value: d.Collection}}
		for key, v := range d.CreateOptions.All() {
			create = append(create, bson.E{Key: strings.Clone(key), Value: v})
		}
		if len(d.Documents) == 0 || d.CreateOptions != nil {
			if _, err := db.RunCommand(ctx, append(create,
				bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}})); err != nil {
				return err
			}
		}
		if len(d.Documents) > 0 {
			docs, err := ourKeys(ctx, d.Documents)
			if err != nil {
				return err
			}
			if _, err := coll.InsertMany(ctx, docs); err != nil {
				return err
			}
		}
		if err := r.deployment.distinct(ctx, d.Database, d.Collection); err != nil {
			return err
		}
	}
	reply, err := r.deployment.admin.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
	r.clusterTime, _ = reply.Lookup("$clusterTime").Document()
	return err
}

// close ends what the test has made.
func (r *runner) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	all := r.entities.list()
	for _, e := range all {
		switch e := e.(type) {
		case *clientEntity: // last
		case *cursor:
			e.Close(ctx)
		case *encryption.Client:
			e.Close()
		case closer:
			e.Close(ctx)
		}
	}
	for _, e := range all { // what ran in them has ended by now
		if s, ok := e.(*sessionEntity); ok && !s.client.closed {
			s.End(ctx)
		}
	}
	for _, c := range r.clients {
		c.Close(ctx)
	}
}

// operation runs one operation and checks what comes of it.
func (r *runner) operation(ctx context.Context, op *Operation) error {
	res, err := r.execute(ctx, op)
	if err != nil {
		if name := leaks.Printed(err); name != "" {
			return fmt.Errorf("%s is in the error of %s", name, op.Name)
		}
	}
	return r.judge(op, res, err)
}

// judge checks what came of an operation.
func (r *runner) judge(op *Operation, res result, err error) error {
	switch {
	case isBroken(err):
		return err
	case op.IgnoreResult:
		return nil
	case op.ExpectError != nil:
		if err == nil {
			return fmt.Errorf("expected an error, got %v", res.value)
		}
		return r.checkError(op.ExpectError, err, res)
	case err != nil:
		return err
	}
	if !op.ExpectResult.IsZero() {
		if err := r.checkResult(op.ExpectResult, res); err != nil {
			return fmt.Errorf("result: %w", err)
		}
	}
	if op.SaveAs != "" {
		return r.save(op.SaveAs, res)
	}
	return nil
}

// save keeps the result of an operation as an entity.
func (r *runner) save(name string, res result) error {
	if res.entity != nil {
		return r.entities.put(name, res.entity)
	}
	if res.value.IsZero() {
		return fmt.Errorf("the operation has no result to save as %q", name)
	}
	return r.entities.put(name, res.value)
}

func (r *runner) checkResult(want bson.RawValue, res result) error {
	arr, isArray := want.Array()
	got, gotArray := res.value.Array()
	if isArray && gotArray && res.roots {
		return matchRoots(arr, got, r.entities)
	}
	return match(want, res.value, true, r.entities)
}

// brokenTest is an error of the test itself, or of what the runner does not know: it is never one
// that a test expects.
type brokenTest struct{ error }

func (b *brokenTest) Unwrap() error { return b.error }

func broken(format string, args ...any) error { return &brokenTest{fmt.Errorf(format, args...)} }

func isBroken(err error) bool {
	_, ok := errors.AsType[*brokenTest](err)
	return ok
}

// execute runs an operation on its object.
func (r *runner) execute(ctx context.Context, op *Operation) (result, error) {
	a := &arguments{doc: op.Arguments}
	if op.Object == "testRunner" {
		f, ok := special[op.Name]
		if !ok {
			return result{}, broken("operation %q of the test runner is not known", op.Name)
		}
		err := f(ctx, r, a)
		if err == nil || a.err != nil {
			err = a.done()
		}
		if err != nil {
			err = &brokenTest{err}
		}
		return result{}, err
	}
	object, err := r.entities.get(op.Object)
	if err != nil {
		return result{}, &brokenTest{err}
	}
	if name := a.string("session"); name != "" {
		s, err := get[*sessionEntity](r.entities, name)
		if err != nil {
			return result{}, &brokenTest{err}
		}
		ctx = allium.WithSession(ctx, s.Session)
	}
	res, known, err := r.dispatch(ctx, a.scoped(object, op.Name), op.Name, a)
	if !known {
		return res, broken("operation %q of a %T is not known", op.Name, object)
	}
	if unused := a.done(); unused != nil {
		return res, &brokenTest{unused}
	}
	return res, err
}

// scoped returns a collection or a database with the concerns and the read preference that an
// operation has among its arguments.
func (a *arguments) scoped(object any, op string) any {
	there := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return !a.doc.Lookup(name).IsZero() })
	}
	switch object := object.(type) {
	case *collection:
		if there("readConcern", "readPreference", "writeConcern") {
			return object.With(allium.CollectionOptions{ReadConcern: a.readConcern("readConcern"),
				ReadPreference: a.readPreference("readPreference"),
				WriteConcern:   a.writeConcern("writeConcern")})
		}
	case *allium.Database:
		switch op {
		// have a read preference of their own, and nothing else
		case "runCommand", "runCursorCommand", "createCommandCursor":
		default:
			if there("readConcern", "readPreference", "writeConcern") {
				return object.With(allium.DatabaseOptions{ReadConcern: a.readConcern("readConcern"),
					ReadPreference: a.readPreference("readPreference"),
					WriteConcern:   a.writeConcern("writeConcern")})
			}
		}
	}
	return object
}

// dispatch runs the operation of an entity.
func (r *runner) dispatch(ctx context.Context, object any, name string,
	a *arguments) (res result, known bool, err error) {
	if op := operationsOf[reflect.TypeOf(object)][name]; op != nil {
		res, err = op(ctx, r, object, a)
		return res, true, err
	}
	return res, false, nil
}
