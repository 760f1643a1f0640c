package mongo

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"allium"
	abson "allium/bson"
	"go.mongodb.org/mongo-driver/v2/internal/native"
	"go.mongodb.org/mongo-driver/v2/internal/optionsutil"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A Client is a handle to a deployment. It pools connections, and is safe for concurrent use.
type Client struct {
	inner *allium.Client
	coder
	opts     *options.ClientOptions
	sessions atomic.Int64 // that were started and have not ended
	keyVault *Client      // of automatic encryption, nil if it has none of its own

	// connected is false for a client of version 1 that has not been connected, nil for others.
	connected *atomic.Bool

	mu   sync.Mutex
	over bool // it was disconnected
}

// Connect returns a client. It does not connect: operations do, and wait for it. Settings of
// several options that follow one another replace those before.
func Connect(opts ...*options.ClientOptions) (*Client, error) {
	o := options.MergeClientOptions(opts...)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &Client{opts: o, coder: coder{}.with(o.Registry, o.BSONOptions)}
	c.connected, _ = optionsutil.Value(o.Custom, coding.Connected).(*atomic.Bool)
	uri, settings, err := c.settings(o)
	if err != nil {
		return nil, err
	}
	if c.inner, err = allium.Open(uri, settings); err != nil {
		if c.keyVault != nil {
			_ = c.keyVault.Disconnect(context.Background())
		}
		return nil, err
	}
	return c, nil
}

func init() {
	native.Inner = func(c any) *allium.Client { return c.(*Client).inner }
	native.Wrap = func(inner *allium.Client) any {
		return &Client{inner: inner, opts: options.Client()}
	}
	native.Collection = func(c any) (*allium.Database, string) {
		coll := c.(*Collection)
		return coll.db.inner, coll.name
	}
	native.Database = func(db any) *allium.Database { return db.(*Database).inner }
}

// context returns the context of an operation. One that has ended is an error: nothing is sent.
func (c *Client) context(ctx context.Context) (context.Context, error) {
	if ctx == nil {
		return context.Background(), c.unconnected()
	}
	if err := ctx.Err(); err != nil {
		return ctx, err
	}
	if err := c.unconnected(); err != nil {
		return ctx, err
	}
	s := allium.SessionFrom(ctx)
	if s == nil {
		return ctx, nil
	}
	if s.Client() != c.inner {
		return ctx, ErrWrongClient
	}
	if mine := SessionFromContext(ctx); mine != nil {
		return ctx, mine.use()
	}
	return ctx, nil
}

// unconnected returns the error of operations before a client of version 1 is connected.
func (c *Client) unconnected() error {
	if c.connected != nil && !c.connected.Load() {
		return ErrClientDisconnected
	}
	return nil
}

// Disconnect closes the client. Operations in progress are waited for as long as ctx lasts; that it
// ended before they did is no error.
func (c *Client) Disconnect(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if err := c.unconnected(); err != nil {
		return err
	}
	c.mu.Lock()
	over := c.over
	c.over = true
	c.mu.Unlock()
	if over {
		return ErrClientDisconnected
	}
	err := c.inner.Close(ctx)
	if ctx.Err() != nil { // what is open is closed in the background
		err = nil
	}
	if c.keyVault != nil {
		if e := c.keyVault.Disconnect(ctx); err == nil {
			err = e
		}
	}
	return err
}

// Ping checks that a server can be reached that suits rp, the client's read preference if it is
// nil.
func (c *Client) Ping(ctx context.Context, rp *readpref.ReadPref) error {
	ctx, err := c.context(ctx)
	if err != nil {
		return err
	}
	return failure(c.inner.Ping(ctx, allium.PingOptions{ReadPreference: readPreference(rp)}))
}

// AppendDriverInfo adds a library to what new connections tell the server of the client.
func (c *Client) AppendDriverInfo(info options.DriverInfo) {
	_ = c.inner.AppendDriverInfo(allium.DriverInfo(info)) // what servers would not take is left out
}

// Database returns the database of a name.
func (c *Client) Database(name string, opts ...options.Lister[options.DatabaseOptions]) *Database {
	o, _ := merged(opts)
	db := &Database{client: c, name: name, coder: c.coder.with(o.Registry, o.BSONOptions)}
	if c.inner == nil {
		return db // a zero Client, as tests have it, is good for handles
	}
	settings := allium.DatabaseOptions{
		ReadPreference: readPreference(o.ReadPreference), ReadConcern: readConcern(o.ReadConcern),
		WriteConcern: writeConcern(o.WriteConcern),
	}
	if o.Registry != nil || o.BSONOptions != nil {
		settings.BSON = db.way().Options()
	}
	db.readPreference, db.quiet = c.opts.ReadPreference, !c.opts.WriteConcern.Acknowledged()
	if o.WriteConcern != nil {
		db.quiet = !o.WriteConcern.Acknowledged()
	}
	if o.ReadPreference != nil {
		db.readPreference = o.ReadPreference
	}
	db.inner = c.inner.Database(name, settings)
	return db
}

// ListDatabasesResult is the result of ListDatabases.
type ListDatabasesResult struct {
	Databases []DatabaseSpecification
	TotalSize int64 // of all of them, in bytes
}

// DatabaseSpecification describes a database.
type DatabaseSpecification struct {
	Name       string
	SizeOnDisk int64 // in bytes
	Empty      bool
}

// ListDatabases lists the databases that match a filter.
func (c *Client) ListDatabases(ctx context.Context, filter any,
	opts ...options.Lister[options.ListDatabasesOptions]) (ListDatabasesResult, error) {
	o, err := merged(opts)
	if err != nil {
		return ListDatabasesResult{}, err
	}
	if ctx, err = c.context(ctx); err != nil {
		return ListDatabasesResult{}, err
	}
	f, err := c.document(filter)
	if err != nil {
		return ListDatabasesResult{}, err
	}
	if o.NameOnly != nil && *o.NameOnly {
		names, err := c.inner.ListDatabaseNames(ctx,
			allium.ListDatabasesOptions{Filter: f, AuthorizedDatabases: o.AuthorizedDatabases})
		if missing(err) {
			err = nil
		}
		out := ListDatabasesResult{Databases: make([]DatabaseSpecification, len(names))}
		for i, name := range names {
			out.Databases[i].Name = name
		}
		return out, commandFailed(err)
	}
	list, err := c.inner.ListDatabases(ctx,
		allium.ListDatabasesOptions{Filter: f, AuthorizedDatabases: o.AuthorizedDatabases})
	if err != nil && !missing(err) {
		return ListDatabasesResult{}, commandFailed(err)
	}
	out := ListDatabasesResult{Databases: make([]DatabaseSpecification, len(list))}
	for i, db := range list {
		out.Databases[i] = DatabaseSpecification(db)
		out.TotalSize += db.SizeOnDisk
	}
	return out, nil
}

// ListDatabaseNames lists the names of the databases that match a filter.
func (c *Client) ListDatabaseNames(ctx context.Context, filter any,
	opts ...options.Lister[options.ListDatabasesOptions]) ([]string, error) {
	opts = append(opts[:len(opts):len(opts)], options.ListDatabases().SetNameOnly(true))
	res, err := c.ListDatabases(ctx, filter, opts...)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(res.Databases))
	for i, db := range res.Databases {
		names[i] = db.Name
	}
	return names, nil
}

// Watch opens a change stream over the whole deployment.
func (c *Client) Watch(ctx context.Context, pipeline any,
	opts ...options.Lister[options.ChangeStreamOptions]) (*ChangeStream, error) {
	return watch(ctx, c, c.coder, c.inner, pipeline, opts)
}

// NumberSessionsInProgress returns how many sessions were started and have not ended.
func (c *Client) NumberSessionsInProgress() int { return int(c.sessions.Load()) }

// A Dialer makes connections.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// resultID is an _id that a result has. One that nothing decodes is given as it is.
func (c coder) resultID(id any) any {
	if v, ok := id.(abson.RawValue); ok {
		var out any
		if c.way().Unmarshal(v.Type, v.Value, &out) == nil {
			return out
		}
	}
	return id
}
