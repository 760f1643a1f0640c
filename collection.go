package allium

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/internal/scope"
	"allium/internal/session"
	"allium/mongoerr"
)

// Collection is a handle to a collection whose documents are encoded from and decoded as T: a
// struct of the application, or bson.D, bson.M or bson.Raw. It is cheap to create and safe for
// concurrent use.
type Collection[T any] struct {
	handle
}

// handle is what a Collection has, whatever the type of its documents.
type handle struct {
	inherited
	name   string
	parent *Database
	err    error // an invalid name, reported by every operation
}

// CollectionOptions are settings of a collection that differ from its database's. Nil fields are
// inherited.
type CollectionOptions struct {
	// ReadPreference, ReadConcern and WriteConcern are inherited if they are nil.
	ReadPreference *consistency.ReadPreference
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	// Timeout bounds each operation from start to finish; a pointer to 0 means no limit.
	Timeout *time.Duration
	// BSON configures encoding and decoding. Its UUID representation is inherited if it is not set.
	BSON *bson.Options
	// CommandFields is a document whose fields every command of an operation has besides its own,
	// but for those that go on with a cursor. It is for the server's own tools, and may change or
	// go at any time.
	CommandFields any
}

// CollectionOf returns the collection of this name with documents of type T. It does no I/O, and
// the collection need not exist.
//
//	users := allium.CollectionOf[User](client.Database("app"), "users")
func CollectionOf[T any](db *Database, name string, opts ...CollectionOptions) *Collection[T] {
	return &Collection[T]{db.handle(name, opts)}
}

func (db *Database) handle(name string, opts []CollectionOptions) handle {
	c := handle{inherited: db.inherited, name: name, parent: db, err: checkName("collection", name)}
	if c.err == nil {
		c.err = db.err
	}
	for _, o := range opts {
		c = c.with(o)
	}
	return c
}

// Collection returns the collection of this name for documents of any type. It does no I/O, and the
// collection need not exist. See CollectionOf for one whose documents have a type.
func (db *Database) Collection(name string, opts ...CollectionOptions) *UntypedCollection {
	return &UntypedCollection{Collection[bson.D]{db.handle(name, opts)}}
}

// With returns a collection that differs from c in the settings that are not nil.
func (c *Collection[T]) With(o CollectionOptions) *Collection[T] {
	return &Collection[T]{c.with(o)}
}

func (c handle) with(o CollectionOptions) handle {
	c.inherited = c.inherited.inherit("collection", o.ReadPreference, o.ReadConcern, o.WriteConcern, o.Timeout, o.BSON)
	if o.CommandFields == nil {
		return c
	}
	extra, err := command.NewExtra(c.bson, o.CommandFields)
	if c.err == nil {
		c.err = err
	}
	c.extra = extra
	return c
}

// Name returns the collection's name without its database.
func (c *Collection[T]) Name() string { return c.name }

// Database returns the database that the collection was made from, with the database's settings.
func (c *Collection[T]) Database() *Database { return c.parent }

// As returns the same collection, with the settings that c has, with documents of type V.
//
//	raw := allium.As[bson.Raw](users)
func As[V any](c AnyCollection) *Collection[V] {
	return &Collection[V]{*c.base()}
}

// An AnyCollection is a *Collection[T] of any T, or an *UntypedCollection.
type AnyCollection interface {
	base() *handle
}

func (c *handle) base() *handle { return c }

// An UntypedCollection takes documents of any type: bson.D, bson.M, structs. Those that it returns
// are bson.D. Everything that is not said here is as with a Collection[bson.D]. It is cheap to
// create and safe for concurrent use.
//
//	users := client.Database("app").Collection("users")
//	res, err := users.InsertOne(ctx, bson.M{"name": "Ada"})
type UntypedCollection struct {
	Collection[bson.D]
}

// With returns a collection that differs from c in the settings that are not nil.
func (c *UntypedCollection) With(o CollectionOptions) *UntypedCollection {
	return &UntypedCollection{Collection[bson.D]{c.with(o)}}
}

// InsertOne inserts a document of any type. See Collection.InsertOne.
func (c *UntypedCollection) InsertOne(ctx context.Context, doc any, opts ...InsertOneOptions) (InsertOneResult, error) {
	return As[any](c).InsertOne(ctx, doc, opts...)
}

// InsertMany inserts documents. docs is a slice of them: []bson.M, []User, []any. See
// Collection.InsertMany.
func (c *UntypedCollection) InsertMany(ctx context.Context, docs any,
	opts ...InsertManyOptions) (InsertManyResult, error) {
	v := reflect.ValueOf(docs)
	if docs == nil {
		return c.insertMany(ctx, 0, nil, opts)
	}
	if v.Kind() == reflect.Slice && v.Type().Elem() != reflect.TypeFor[bson.E]() { // a bson.D is one document
		return c.insertMany(ctx, v.Len(), func(i int) (any, *bson.Options) {
			return v.Index(i).Addr().Interface(), c.bson
		}, opts)
	}
	return InsertManyResult{}, c.failed(ctx, "insert", c.name,
		fmt.Errorf("InsertMany of a %T, want a slice of documents", docs))
}

// ReplaceOne replaces the first document that matches the filter by one of any type. See
// Collection.ReplaceOne.
func (c *UntypedCollection) ReplaceOne(ctx context.Context, filter, replacement any,
	opts ...ReplaceOptions) (UpdateResult, error) {
	return As[any](c).ReplaceOne(ctx, filter, replacement, opts...)
}

// FindOneAndReplace replaces the first document that matches the filter by one of any type, and
// returns it. See Collection.FindOneAndReplace.
func (c *UntypedCollection) FindOneAndReplace(ctx context.Context, filter, replacement any,
	opts ...FindOneAndReplaceOptions) (bson.D, error) {
	return findOneAndReplace[bson.D](ctx, &c.handle, filter, &replacement, opts)
}

// InsertOneModel is the write of a bulk write that inserts a document of any type. It sends
// nothing.
func (c *UntypedCollection) InsertOneModel(doc any) WriteModel {
	return As[any](c).InsertOneModel(doc)
}

// ReplaceOneModel is the write of a bulk write that replaces the first document that matches the
// filter by one of any type. It sends nothing.
func (c *UntypedCollection) ReplaceOneModel(filter, replacement any, opts ...ReplaceModelOptions) WriteModel {
	return As[any](c).ReplaceOneModel(filter, replacement, opts...)
}

// asDatabase returns the database with the collection's settings, for commands that are about the
// collection and addressed to its database.
func (c *Collection[T]) asDatabase() *Database {
	return &Database{inherited: c.inherited, err: checkName("database", c.db)}
}

// inherited is what a database or a collection hands down to its operations: where they run, and
// the settings that are inherited from the client downwards.
type inherited struct {
	client         *Client
	db             string
	readPreference *consistency.ReadPreference
	readConcern    *consistency.ReadConcern
	writeConcern   *consistency.WriteConcern
	timeout        *time.Duration
	timeoutLevel   string // whose timeout it is
	bson           *bson.Options
	scopes         *scope.Set // nil: none
	scoping        *scope.Run // the scopes at work on an operation of several commands; nil: each command's own
	extra          *command.Extra
}

// inherit overrides what a level below sets itself.
func (s inherited) inherit(level string, rp *consistency.ReadPreference, rc *consistency.ReadConcern,
	wc *consistency.WriteConcern, timeout *time.Duration, o *bson.Options) inherited {
	s.bson = overrideBSON(s.bson, option.Copy(o))
	if rp != nil {
		s.readPreference = option.Copy(rp)
	}
	if rc != nil {
		s.readConcern = option.Copy(rc)
	}
	if wc != nil {
		s.writeConcern = option.Copy(wc)
	}
	if timeout != nil {
		s.timeout, s.timeoutLevel = new(*timeout), level
	}
	return s
}

// overrideBSON returns what holds below outer where o is set. A UUID representation holds until
// another one is chosen: options about something else must not change how identifiers are stored.
func overrideBSON(outer, o *bson.Options) *bson.Options {
	switch {
	case o == nil:
		return outer
	case outer == nil || o.UUID != bson.UUIDDefault:
		return o
	}
	with := *o
	with.UUID = outer.UUID
	return &with
}

var errNilContext = failure.ErrNilContext

var errExtraInScope = fmt.Errorf("%w: option CommandFields says what the filter does not know", mongoerr.ErrScope)

// op makes the operation that runs a command, with what it inherits: its session from ctx, its time
// limit from opTimeout or s, and from s the preference and the concerns that the command takes. A
// scope changes the command, or refuses it.
func (s *inherited) op(ctx context.Context, cmd command.Command, opTimeout *time.Duration) (exec.Op, error) {
	op := exec.NewOp(cmd)
	err := s.inherits(ctx, &op, opTimeout)
	return op, err
}

// inherits is op for an operation that is made already.
func (s *inherited) inherits(ctx context.Context, op *exec.Op, opTimeout *time.Duration) error {
	op.DB, op.BSON, op.Extra = s.db, s.bson, s.extra
	if ctx == nil {
		return errNilContext
	}
	if err := s.within(ctx, op, opTimeout); err != nil {
		if op.Session != nil {
			op.Session.Transaction().Fail(err)
		}
		return err
	}
	if s.scopes != nil {
		if s.extra != nil {
			return errExtraInScope
		}
		run := s.scoping
		if run == nil {
			run = s.scopes.Begin(ctx)
		}
		if err := run.Apply(s.bson, op.Command); err != nil {
			return err
		}
	}
	takes := op.Command.Traits().Inherits
	if takes.Has(command.ReadPreferences) {
		op.ReadPreference = s.readPreference
	}
	if takes.Has(command.ReadConcerns) && s.readConcern != nil {
		op.ReadConcern = s.readConcern.Level
	}
	if !takes.Has(command.WriteConcerns) {
		return nil
	}
	// In a transaction the transaction's counts, also in place of one that asks for no answer
	// (specification: Transactions).
	if op.Session == nil || !op.Session.Transaction().Running() {
		op.WriteConcern = s.writeConcern
	}
	return s.writeConcern.Validate()
}

// failed says which command on which collection of the database, if any, an error is about that is
// found before the command is made, or in its reply. Package exec does so with all others.
func (s *inherited) failed(ctx context.Context, command, collection string, err error) error {
	return exec.Ahead(ctx, command, s.db, collection, err)
}

// within gives op its session and its limit.
func (s *inherited) within(ctx context.Context, op *exec.Op, opTimeout *time.Duration) error {
	sess := SessionFrom(ctx)
	if sess != nil {
		if sess.client != s.client {
			return errors.New("session belongs to another client")
		}
		op.Session = sess.inner
		if sess.bound != nil {
			if opTimeout != nil {
				return errors.New("an operation inside Transact with a timeout cannot have a timeout of its own")
			}
			op.Limit = *sess.bound
			return nil
		}
	}
	var err error
	op.Limit, err = s.limit(opTimeout)
	return err
}

// limit returns what bounds an operation in time that begins now: opTimeout, or that of s
// if that is nil.
func (s *inherited) limit(opTimeout *time.Duration) (exec.Limit, error) {
	timeout, level := s.timeout, s.timeoutLevel
	if opTimeout != nil {
		timeout, level = opTimeout, "operation"
	}
	if timeout == nil {
		return exec.Limit{}, nil
	}
	if *timeout < 0 {
		return exec.Limit{}, fmt.Errorf("timeout of the %s is %v, want 0 or more", level, *timeout)
	}
	return exec.NewLimit(timeout, timeoutSources[level]), nil
}

// timeoutSources are what errors call the timeouts.
var timeoutSources = map[string]mongoerr.Source{"client": mongoerr.SourceClient, "database": mongoerr.SourceDatabase,
	"collection": mongoerr.SourceCollection, "session": mongoerr.SourceSession, "operation": mongoerr.SourceOperation}

// operation runs an operation of several commands, in one span if the client traces.
func (s *inherited) operation(ctx context.Context, name, collection string, run func(context.Context) error) error {
	var inner *session.Session
	if own := SessionFrom(ctx); own != nil && own.client == s.client {
		inner = own.inner
	}
	return s.client.exec.Operation(ctx, inner, name, s.db, collection, run)
}

// ops are the memory of operations of one command, which is used again: nothing refers to an
// operation once it has ended and its reply has been read.
var ops sync.Pool

func newOp() *exec.Op {
	if op, ok := ops.Get().(*exec.Op); ok {
		return op
	}
	var op exec.Op
	return &op
}

func releaseOp(op *exec.Op) {
	var none exec.Op
	*op = none
	ops.Put(op)
}

// run runs an operation that is complete.
func (s *inherited) run(ctx context.Context, op *exec.Op) (exec.Result, error) {
	return s.client.exec.Run(ctx, op)
}

// maxTime puts a MaxTime option, in milliseconds, where ms points to. A timeout of the driver's own
// replaces it (specification: Client Side Operations Timeout); with one that comes from the
// context, the option stands.
func maxTime(op *exec.Op, d time.Duration, ms *int64) error {
	switch {
	case d < 0:
		return negative("MaxTime", d)
	case d == 0 || op.Timeout != nil:
		return nil
	}
	op.NoMaxTime = true
	*ms = command.MaxTimeMS(d)
	return nil
}

// negative returns the error of an option that is a negative time.
func negative(option string, d time.Duration) error {
	return fmt.Errorf("%s is %v, want 0 or more", option, d)
}

// checkName reports names that are invalid on every server.
func checkName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%s name is empty", what)
	}
	for i := range len(name) {
		if name[i] == 0 {
			return fmt.Errorf("%s name %q contains a NUL byte", what, name)
		}
	}
	return nil
}
