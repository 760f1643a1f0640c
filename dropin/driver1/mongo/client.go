// Package mongo has clients, databases and collections as version 1 of the official driver has
// them. It stands on package mongo of version 2.
package mongo

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/internal/dialect"
	"go.mongodb.org/mongo-driver/internal/native"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A Client is a handle to a deployment. It pools connections, and is safe for concurrent use.
type Client struct {
	inner     *v2mongo.Client
	opts      *options.ClientOptions
	connected *atomic.Bool
}

// Connect returns a client. It does not connect: operations do, and wait for it. Settings of
// several options that follow one another replace those before.
func Connect(ctx context.Context, opts ...*options.ClientOptions) (*Client, error) {
	c, err := NewClient(opts...)
	if err != nil {
		return nil, err
	}
	return c, c.Connect(ctx)
}

// NewClient returns a client. Its operations return ErrClientDisconnected until it is connected.
//
// Deprecated: use Connect.
func NewClient(opts ...*options.ClientOptions) (*Client, error) {
	o := options.MergeClientOptions(opts...)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	settings, connected := clientOptions(o), new(atomic.Bool)
	coding.WithOption(&settings.Custom, coding.Connected, connected)
	inner, err := v2mongo.Connect(settings)
	if err != nil {
		return nil, failure(err)
	}
	return &Client{inner: inner, opts: o, connected: connected}, nil
}

// Connect lets operations of a client of NewClient begin. Only its first call is no error.
//
// Deprecated: use the function Connect.
func (c *Client) Connect(context.Context) error {
	if c.connected.Swap(true) {
		return errConnected
	}
	return nil
}

var errConnected = errors.New("topology is connected or connecting")

// clientOptions returns options of version 2.
func clientOptions(o *options.ClientOptions) *v2options.ClientOptions {
	to := dialect.ClientOptions(o)
	r := o.Registry
	if r == nil {
		r = bson.DefaultRegistry
	}
	to.Registry = convert.Registry(r, o.BSONOptions)
	to.BSONOptions = convert.BSONOptions(o.BSONOptions)
	to.ReadConcern, to.WriteConcern = convert.ReadConcern(o.ReadConcern), convert.WriteConcern(o.WriteConcern)
	to.Monitor, to.PoolMonitor, to.ServerMonitor = commandMonitor(o.Monitor), poolMonitor(o.PoolMonitor),
		serverMonitor(o.ServerMonitor)
	coding.WithOption(&to.Custom, coding.Described, described(o.ServerMonitor))
	convert.SocketTimeout(to, o.SocketTimeout)
	if a := o.AutoEncryptionOptions; a != nil {
		to.AutoEncryptionOptions = &v2options.AutoEncryptionOptions{
			KeyVaultNamespace: a.KeyVaultNamespace, KmsProviders: a.KmsProviders, SchemaMap: a.SchemaMap,
			BypassAutoEncryption: a.BypassAutoEncryption,
			ExtraOptions:         a.ExtraOptions, TLSConfig: a.TLSConfig, HTTPClient: a.HTTPClient,
			EncryptedFieldsMap: a.EncryptedFieldsMap, BypassQueryAnalysis: a.BypassQueryAnalysis,
		}
		if a.KeyVaultClientOptions != nil {
			to.AutoEncryptionOptions.KeyVaultClientOptions = clientOptions(a.KeyVaultClientOptions)
		}
	}
	return to
}

func init() {
	native.Client = func(c any) *v2mongo.Client { return c.(*Client).inner }
	native.WrapClient = func(inner *v2mongo.Client) any {
		c := &Client{inner: inner, opts: options.Client(), connected: new(atomic.Bool)}
		c.connected.Store(true)
		return c
	}
	native.Database = func(db any) *v2mongo.Database { return db.(*Database).inner }
	native.Collection = func(coll any) *v2mongo.Collection { return coll.(*Collection).inner }
	native.WrapCollection = func(db any, coll *v2mongo.Collection) any { return &Collection{coll, db.(*Database)} }
	native.WrapCursor = func(c *v2mongo.Cursor) any { return cursorOf(c) }
	native.Failure = failure
}

// with returns the options of an operation as those of version 2.
func with[V1, V2 any](opts []*V1, merge func(...*V1) *V1, make func(*V1) v2options.Lister[V2]) []v2options.Lister[V2] {
	switch {
	case len(opts) == 0:
		return nil
	case len(opts) == 1 && opts[0] != nil:
		return []v2options.Lister[V2]{make(opts[0])}
	}
	return []v2options.Lister[V2]{make(merge(opts...))}
}

// Disconnect closes the client. Operations in progress are waited for as long as ctx lasts.
func (c *Client) Disconnect(ctx context.Context) error { return failure(c.inner.Disconnect(ctx)) }

// Ping checks that a server can be reached that suits rp, the client's read preference if it is
// nil.
func (c *Client) Ping(ctx context.Context, rp *readpref.ReadPref) error {
	return failure(c.inner.Ping(ctx, rp))
}

// Database returns the database of a name.
func (c *Client) Database(name string, opts ...*options.DatabaseOptions) *Database {
	o := options.MergeDatabaseOptions(opts...)
	db := &Database{client: c, readConcern: o.ReadConcern, writeConcern: o.WriteConcern,
		readPreference: o.ReadPreference}
	if c.inner != nil {
		db.inner = c.inner.Database(name, with(opts, options.MergeDatabaseOptions, convert.Database)...)
	} else {
		db.inner = new(v2mongo.Client).Database(name) // a zero Client, as tests have it, is good for handles
	}
	if c.opts != nil {
		if db.readConcern == nil {
			db.readConcern = c.opts.ReadConcern
		}
		if db.writeConcern == nil {
			db.writeConcern = c.opts.WriteConcern
		}
		if db.readConcern == nil {
			db.readConcern = readconcern.New()
		}
		if db.readPreference == nil {
			db.readPreference = c.opts.ReadPreference
		}
	}
	if db.readPreference == nil {
		db.readPreference = readpref.Primary()
	}
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
	opts ...*options.ListDatabasesOptions) (ListDatabasesResult, error) {
	res, err := c.inner.ListDatabases(ctx, filter,
		with(opts, options.MergeListDatabasesOptions, convert.ListDatabases)...)
	if err != nil {
		return ListDatabasesResult{}, failure(err)
	}
	out := ListDatabasesResult{Databases: make([]DatabaseSpecification, len(res.Databases)), TotalSize: res.TotalSize}
	for i, db := range res.Databases {
		out.Databases[i] = DatabaseSpecification(db)
	}
	return out, nil
}

// ListDatabaseNames lists the names of the databases that match a filter.
func (c *Client) ListDatabaseNames(ctx context.Context, filter any,
	opts ...*options.ListDatabasesOptions) ([]string, error) {
	names, err := c.inner.ListDatabaseNames(ctx, filter,
		with(opts, options.MergeListDatabasesOptions, convert.ListDatabases)...)
	return names, failure(err)
}

// Watch opens a change stream over the whole deployment.
func (c *Client) Watch(ctx context.Context, pipeline any, opts ...*options.ChangeStreamOptions) (*ChangeStream, error) {
	return streamOf(c.inner.Watch(ctx, pipeline, with(opts, options.MergeChangeStreamOptions, convert.ChangeStream)...))
}

// NumberSessionsInProgress returns how many sessions were started and have not ended.
func (c *Client) NumberSessionsInProgress() int { return c.inner.NumberSessionsInProgress() }

// Timeout returns how long an operation may take, nil for no limit.
func (c *Client) Timeout() *time.Duration {
	if c.opts == nil {
		return nil
	}
	return c.opts.Timeout
}

// A Dialer makes connections.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}
