// Package mtest has tests with clients of a deployment that is not there: the test says what is
// replied. Tests with clients of real deployments, which the official driver has besides, are not
// here.
package mtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/event"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/drivertest"
)

// TestDb is the database of tests that name none.
const TestDb = "test"

// Settings that tests use.
var (
	MajorityWc  = writeconcern.Majority()
	PrimaryRp   = readpref.Primary()
	SecondaryRp = readpref.Secondary()
	LocalRc     = readconcern.Local()
	MajorityRc  = readconcern.Majority()
)

// A ClientType says what a client is connected to.
type ClientType int

// Mock is a client of a deployment that answers with the replies of the test.
const Mock ClientType = 2

// Options are the settings of a test.
type Options struct {
	clientType       *ClientType
	clientOpts       *options.ClientOptions
	collOpts         *options.CollectionOptions
	create, share    *bool
	database, coll   string
	createCollection *bool
	responses        []bson.D
}

// NewOptions returns settings that set nothing.
func NewOptions() *Options { return &Options{} }

// ClientType says what the client is connected to.
func (op *Options) ClientType(ct ClientType) *Options {
	op.clientType = &ct
	return op
}

// ClientOptions are the settings of the client.
func (op *Options) ClientOptions(opts *options.ClientOptions) *Options {
	op.clientOpts = opts
	return op
}

// CreateClient says whether the test has a client.
func (op *Options) CreateClient(create bool) *Options {
	op.create = &create
	return op
}

// CreateCollection says whether the test has a collection.
func (op *Options) CreateCollection(create bool) *Options {
	op.createCollection = &create
	return op
}

// CollectionName is the name of the collection. It is the test's by default.
func (op *Options) CollectionName(collName string) *Options {
	op.coll = collName
	return op
}

// CollectionOptions are the settings of the collection.
func (op *Options) CollectionOptions(opts *options.CollectionOptions) *Options {
	op.collOpts = opts
	return op
}

// DatabaseName is the name of the database, TestDb by default.
func (op *Options) DatabaseName(dbName string) *Options {
	op.database = dbName
	return op
}

// MockResponses are the first replies of the deployment.
func (op *Options) MockResponses(responses ...bson.D) *Options {
	op.responses = responses
	return op
}

// ShareClient says whether the test's client is that of the tests inside it, too.
func (op *Options) ShareClient(share bool) *Options {
	op.share = &share
	return op
}

// T is a test with a client.
type T struct {
	*testing.T

	Client *mongo.Client
	DB     *mongo.Database
	Coll   *mongo.Collection

	base       Options // what the tests inside it inherit
	op         Options
	deployment *drivertest.MockDeployment
	shared     bool // the client is that of the test around it

	mu        sync.Mutex // for what follows
	started   []*event.CommandStartedEvent
	succeeded []*event.CommandSucceededEvent
	failed    []*event.CommandFailedEvent
	out       int // connections that are in use
}

// New returns a test. It has a client only if that is shared with the tests inside it.
func New(wrapped *testing.T, opts ...*Options) *T {
	t := &T{T: wrapped}
	for _, op := range opts {
		t.op.add(op)
	}
	t.base = Options{clientType: t.op.clientType, share: t.op.share}
	if isTrue(t.op.share) {
		t.Helper()
		t.connect()
		t.DB, t.Coll = nil, nil
		wrapped.Cleanup(t.close)
	}
	return t
}

func isTrue(b *bool) bool { return b != nil && *b }

func orTrue(b *bool) bool { return b == nil || *b }

// add sets what another Options sets.
func (op *Options) add(other *Options) {
	if other == nil {
		return
	}
	set(&op.clientType, other.clientType)
	set(&op.clientOpts, other.clientOpts)
	set(&op.collOpts, other.collOpts)
	set(&op.create, other.create)
	set(&op.share, other.share)
	set(&op.createCollection, other.createCollection)
	if other.database != "" {
		op.database = other.database
	}
	if other.coll != "" {
		op.coll = other.coll
	}
	op.responses = append(slices.Clone(op.responses), other.responses...)
}

func set[V any](to **V, v *V) {
	if v != nil {
		*to = v
	}
}

// connect makes the client and what hangs on it.
func (t *T) connect() {
	t.Helper()
	if t.op.clientType == nil || *t.op.clientType != Mock {
		t.Fatal("package mtest of this driver has tests with the client type Mock only")
	}
	t.deployment = drivertest.NewMockDeployment()
	t.AddMockResponses(t.op.responses...)
	own := options.Client().SetWriteConcern(MajorityWc).SetReadPreference(PrimaryRp)
	opts := options.MergeClientOptions(own, t.op.clientOpts)
	opts.Monitor, opts.PoolMonitor = t.monitor(opts.Monitor), t.poolMonitor(opts.PoolMonitor)
	opts.Deployment = t.deployment
	var err error
	if t.Client, err = mongo.Connect(context.Background(), opts); err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.open()
}

// open makes the database and the collection.
func (t *T) open() {
	name := t.op.database
	if name == "" {
		name = TestDb
	}
	t.DB = t.Client.Database(name)
	if !orTrue(t.op.createCollection) {
		return
	}
	coll := t.op.coll
	if coll == "" {
		coll = t.Name()
	}
	t.Coll = t.DB.Collection(coll, t.op.collOpts)
}

func (t *T) close() {
	if t.Client != nil && !t.shared {
		_ = t.Client.Disconnect(context.Background())
	}
}

func (t *T) monitor(also *event.CommandMonitor) *event.CommandMonitor {
	if also == nil {
		also = new(event.CommandMonitor)
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			t.mu.Lock()
			t.started = append(t.started, e)
			t.mu.Unlock()
			if also.Started != nil {
				also.Started(ctx, e)
			}
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
			t.mu.Lock()
			t.succeeded = append(t.succeeded, e)
			t.mu.Unlock()
			if also.Succeeded != nil {
				also.Succeeded(ctx, e)
			}
		},
		Failed: func(ctx context.Context, e *event.CommandFailedEvent) {
			t.mu.Lock()
			t.failed = append(t.failed, e)
			t.mu.Unlock()
			if also.Failed != nil {
				also.Failed(ctx, e)
			}
		},
	}
}

func (t *T) poolMonitor(also *event.PoolMonitor) *event.PoolMonitor {
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		t.mu.Lock()
		switch e.Type {
		case event.GetSucceeded:
			t.out++
		case event.ConnectionReturned:
			t.out--
		}
		t.mu.Unlock()
		if also != nil && also.Event != nil {
			also.Event(e)
		}
	}}
}

// Run runs a test inside this one, with a client of its own.
func (t *T) Run(name string, callback func(mt *T)) { t.RunOpts(name, NewOptions(), callback) }

// RunOpts is Run with further settings.
func (t *T) RunOpts(name string, opts *Options, callback func(mt *T)) {
	t.T.Run(name, func(wrapped *testing.T) {
		sub := &T{T: wrapped, op: t.base}
		sub.op.add(opts)
		sub.base = Options{clientType: sub.op.clientType, share: t.base.share}
		switch {
		case !orTrue(sub.op.create):
		case isTrue(t.base.share) && t.Client != nil:
			sub.shared, sub.Client, sub.deployment = true, t.Client, t.deployment
			sub.AddMockResponses(sub.op.responses...)
			sub.open()
		default:
			sub.connect()
		}
		defer sub.close()
		callback(sub)
	})
}

// AddMockResponses adds replies to those of the deployment.
func (t *T) AddMockResponses(responses ...bson.D) {
	for _, r := range responses {
		t.deployment.AddResponses(convert.D(r))
	}
}

// ClearMockResponses removes the replies that are left.
func (t *T) ClearMockResponses() { t.deployment.ClearResponses() }

// take removes the first element of a list, and returns it, nil if there is none.
func take[E any](t *T, list *[]*E) *E {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(*list) == 0 {
		return nil
	}
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

// all returns a list.
func all[E any](t *T, list *[]*E) []*E {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *list
}

// filter removes what keep does not want.
func filter[E any](t *T, list *[]*E, keep func(*E) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept []*E
	for _, e := range *list {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	*list = kept
}

// GetStartedEvent returns the first event of a started command, and removes it; nil if there is
// none.
func (t *T) GetStartedEvent() *event.CommandStartedEvent { return take(t, &t.started) }

// GetSucceededEvent is GetStartedEvent for commands that have succeeded.
func (t *T) GetSucceededEvent() *event.CommandSucceededEvent { return take(t, &t.succeeded) }

// GetFailedEvent is GetStartedEvent for commands that have failed.
func (t *T) GetFailedEvent() *event.CommandFailedEvent { return take(t, &t.failed) }

// GetAllStartedEvents returns the events of started commands.
func (t *T) GetAllStartedEvents() []*event.CommandStartedEvent { return all(t, &t.started) }

// GetAllSucceededEvents returns the events of commands that have succeeded.
func (t *T) GetAllSucceededEvents() []*event.CommandSucceededEvent { return all(t, &t.succeeded) }

// GetAllFailedEvents returns the events of commands that have failed.
func (t *T) GetAllFailedEvents() []*event.CommandFailedEvent { return all(t, &t.failed) }

// FilterStartedEvents removes the events of started commands that filter does not want.
func (t *T) FilterStartedEvents(keep func(*event.CommandStartedEvent) bool) {
	filter(t, &t.started, keep)
}

// FilterSucceededEvents is FilterStartedEvents for commands that have succeeded.
func (t *T) FilterSucceededEvents(keep func(*event.CommandSucceededEvent) bool) {
	filter(t, &t.succeeded, keep)
}

// FilterFailedEvents is FilterStartedEvents for commands that have failed.
func (t *T) FilterFailedEvents(keep func(*event.CommandFailedEvent) bool) {
	filter(t, &t.failed, keep)
}

// ClearEvents removes all events.
func (t *T) ClearEvents() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started, t.succeeded, t.failed = nil, nil, nil
}

// NumberConnectionsCheckedOut returns how many connections are in use.
func (t *T) NumberConnectionsCheckedOut() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out
}

// ResetClient disconnects the client, and makes another one, with other settings if opts is not
// nil.
func (t *T) ResetClient(opts *options.ClientOptions) {
	t.Helper()
	if opts != nil {
		t.op.clientOpts = opts
	}
	t.close()
	t.shared, t.op.responses = false, nil
	t.connect()
}

// CloneDatabase gives the database other settings.
func (t *T) CloneDatabase(opts *options.DatabaseOptions) {
	t.DB = t.Client.Database(t.DB.Name(), opts)
}

// CloneCollection gives the collection other settings.
func (t *T) CloneCollection(opts *options.CollectionOptions) {
	t.Helper()
	coll, err := t.Coll.Clone(opts)
	if err != nil {
		t.Fatalf("clone a collection: %v", err)
	}
	t.Coll = coll
}

// Collection describes a collection that a test makes.
type Collection struct {
	Name         string
	DB           string        // the test's by default
	Client       *mongo.Client // the test's by default
	Opts         *options.CollectionOptions
	CreateOpts   *options.CreateCollectionOptions
	ViewOn       string // for a view: the collection behind it
	ViewPipeline any
}

// CreateCollection returns a collection. With createOnServer it runs the command that makes it,
// which takes a reply.
func (t *T) CreateCollection(coll Collection, createOnServer bool) *mongo.Collection {
	t.Helper()
	client, db := t.Client, t.DB.Name()
	if coll.Client != nil {
		client = coll.Client
	}
	if coll.DB != "" {
		db = coll.DB
	}
	database := client.Database(db)
	if createOnServer {
		var err error
		if coll.ViewOn != "" {
			err = database.CreateView(context.Background(), coll.Name, coll.ViewOn, coll.ViewPipeline)
		} else {
			err = database.CreateCollection(context.Background(), coll.Name, coll.CreateOpts)
		}
		if err != nil {
			t.Fatalf("create a collection: %v", err)
		}
	}
	return database.Collection(coll.Name, coll.Opts)
}
