package mistakes

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/consistency"
	"allium/mongotest"
)

// noRecords is a resolver of a domain without a deployment.
type noRecords struct{}

func (noRecords) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	return "", nil, &net.DNSError{Err: "no such host", Name: "_" + service + "._" + proto + "." + name,
		IsNotFound: true}
}

func (noRecords) LookupTXT(context.Context, string) ([]string, error) {
	return nil, errors.New("nobody asks")
}

func opens(uri string) func(context.Context, *Env) error {
	return func(_ context.Context, e *Env) error { return second(e.open(uri)) }
}

func warns(uri string) func(context.Context, *Env) error {
	return func(_ context.Context, e *Env) error { return warning(e, uri) }
}

var connectionStrings = Section{"Connection strings", false, []Mistake{
	{
		Name: "no scheme", Code: `allium.Open("localhost:27017")`,
		Make: opens("localhost:27017"),
	},
	{
		Name: "no host", Code: `allium.Open("mongodb://")`,
		Make: opens("mongodb://"),
	},
	{
		Name: "at sign in the password", Code: `allium.Open("mongodb://ada:p@ss@localhost")`,
		Make: opens("mongodb://ada:p@ss@localhost"),
	},
	{
		Name: "slash in the password", Code: `allium.Open("mongodb://ada:p/ss@localhost")`,
		Make: opens("mongodb://ada:p/ss@localhost"),
	},
	{
		Name: "port that is no number", Code: `allium.Open("mongodb://localhost:mongo")`,
		Make: opens("mongodb://localhost:mongo"),
	},
	{
		Name: "port out of range", Code: `allium.Open("mongodb://localhost:270170")`,
		Make: opens("mongodb://localhost:270170"),
	},
	{
		Name: "misspelt option", Code: `allium.Open("mongodb://localhost/?replicatSet=rs0")`,
		Make: warns("mongodb://localhost/?replicatSet=rs0"),
	},
	{
		Name: "misspelt boolean", Code: `allium.Open("mongodb://localhost/?retryWrites=flase")`,
		Make: warns("mongodb://localhost/?retryWrites=flase"),
	},
	{
		Name: "misspelt read preference", Code: `allium.Open("mongodb://localhost/?readPreference=secundary")`,
		Make: warns("mongodb://localhost/?readPreference=secundary"),
	},
	{
		Name: "number with a unit", Code: `allium.Open("mongodb://localhost/?connectTimeoutMS=10s")`,
		Make: warns("mongodb://localhost/?connectTimeoutMS=10s"),
	},
	{
		Name: "unknown compressor in the string", Code: `allium.Open("mongodb://localhost/?compressors=gzip")`,
		Make: warns("mongodb://localhost/?compressors=gzip"),
	},
	{
		Name: "unknown compressor", Code: `allium.Open(uri, allium.ClientOptions{Compressors: []string{"gzip"}})`,
		Make: func(_ context.Context, e *Env) error {
			return second(e.open("mongodb://localhost", allium.ClientOptions{Compressors: []string{"gzip"}}))
		},
	},
	{
		Name: "option without a value", Code: `allium.Open("mongodb://localhost/?tls")`,
		Make: opens("mongodb://localhost/?tls"),
	},
	{
		Name: "direct connection to several hosts", Code: `allium.Open("mongodb://a,b/?directConnection=true")`,
		Make: opens("mongodb://a,b/?directConnection=true"),
	},
	{
		Name: "port in an SRV string", Code: `allium.Open("mongodb+srv://cluster.example.com:27017")`,
		Make: opens("mongodb+srv://cluster.example.com:27017"),
	},
	{
		Name: "SRV string of a host without records", Code: `allium.Open("mongodb+srv://cluster.example.com")`,
		Make: func(_ context.Context, e *Env) error {
			return second(e.open("mongodb+srv://cluster.example.com", allium.ClientOptions{Resolver: noRecords{}}))
		},
	},
	{
		Name: "unknown mechanism", Code: `allium.Open("mongodb://ada:lovelace@localhost/?authMechanism=SCRAM-SHA-512")`,
		Make: opens("mongodb://ada:lovelace@localhost/?authMechanism=SCRAM-SHA-512"),
	},
	{
		Name: "pool without room for its minimum",
		Code: `allium.Open("mongodb://localhost/?maxPoolSize=5&minPoolSize=10")`,
		Make: opens("mongodb://localhost/?maxPoolSize=5&minPoolSize=10"),
	},
	{
		Name: "unacknowledged and journaled", Code: `allium.Open("mongodb://localhost/?w=0&journal=true")`,
		Make: opens("mongodb://localhost/?w=0&journal=true"),
	},
	{
		Name: "certificate file that is not there",
		Code: `allium.Open("mongodb://localhost/?tlsCAFile=/etc/ssl/ca.pem")`,
		Make: opens("mongodb://localhost/?tlsCAFile=/etc/ssl/ca.pem"),
	},
	{
		Name: "certificate file without a certificate",
		Code: `allium.Open("mongodb://localhost/?tlsCAFile=/etc/ssl/notes.txt")`,
		Make: func(_ context.Context, e *Env) error {
			return second(e.open("mongodb://localhost/?tlsCAFile=" + e.File("notes.txt", "to do\n")))
		},
	},
	{
		Name: "password in the clear",
		Code: `allium.Open("mongodb://ada:lovelace@db.example.com/?authMechanism=PLAIN")`,
		Make: opens("mongodb://ada:lovelace@db.example.com/?authMechanism=PLAIN"),
	},
}}

var connecting = Section{"Connecting", false, []Mistake{
	{
		Name: "nobody listens", Code: `client.Ping(ctx)`,
		Make: func(ctx context.Context, e *Env) error { return ping(ctx, e, "mongodb://"+e.Closed()) },
	},
	{
		Name: "unknown host", Code: `allium.Open("mongodb://no-such-host.invalid")`,
		Make: func(ctx context.Context, e *Env) error {
			dialer := dialFunc(func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp",
					Err: &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}}
			})
			return ping(ctx, e, "mongodb://no-such-host.invalid", allium.ClientOptions{Dialer: dialer})
		},
	},
	{
		Name: "wrong set name", Code: `allium.Open("mongodb://localhost/?replicaSet=rs1")`,
		Make: func(ctx context.Context, e *Env) error {
			return ping(ctx, e, "mongodb://"+host(e.Set())+"/?replicaSet=rs1")
		},
	},
	{
		Name: "set name for a server without a set", Code: `allium.Open("mongodb://localhost/?replicaSet=rs0")`,
		Make: func(ctx context.Context, e *Env) error {
			return ping(ctx, e, "mongodb://"+host(e.Standalone())+"/?replicaSet=rs0")
		},
	},
	{
		Name: "wrong set name on a direct connection",
		Code: `allium.Open("mongodb://localhost/?directConnection=true&replicaSet=rs1")`,
		Make: func(ctx context.Context, e *Env) error {
			return ping(ctx, e, "mongodb://"+host(e.Set())+"/?directConnection=true&replicaSet=rs1")
		},
	},
	{
		Name: "TLS to a server without it", Code: `allium.Open("mongodb://localhost/?tls=true")`,
		Make: func(ctx context.Context, e *Env) error {
			return ping(ctx, e, "mongodb://"+host(e.Standalone())+"/?tls=true")
		},
	},
	{
		Name: "no TLS to a server with it", Code: `allium.Open("mongodb://localhost")`,
		Make: func(ctx context.Context, e *Env) error { return ping(ctx, e, "mongodb://"+host(e.TLS())) },
	},
	{
		Name: "certificate of an unknown authority", Code: `allium.Open("mongodb://localhost/?tls=true")`,
		Make: func(ctx context.Context, e *Env) error {
			// the system's authorities are read first
			patient := allium.ClientOptions{ServerSelectionTimeout: new(time.Second)}
			return ping(ctx, e, "mongodb://"+host(e.TLS())+"/?tls=true", patient)
		},
	},
	{
		Name: "certificate for another name", Code: `allium.Open("mongodb://db.example.com/?tls=true")`,
		Make: func(ctx context.Context, e *Env) error {
			d := e.TLS()
			dialer := dialFunc(func(ctx context.Context, network, _ string) (net.Conn, error) {
				var nd net.Dialer
				return nd.DialContext(ctx, network, host(d))
			})
			return ping(ctx, e, "mongodb://db.example.com",
				allium.ClientOptions{Dialer: dialer, TLS: &tls.Config{RootCAs: d.TLSConfig().RootCAs}})
		},
	},
	{
		Name: "not a MongoDB server", Code: `allium.Open("mongodb://localhost:8080")`,
		Make: func(ctx context.Context, e *Env) error {
			return ping(ctx, e, "mongodb://"+e.Listen("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n"))
		},
	},
	{
		Name: "wrong password", Code: `allium.Open("mongodb://ada:byron@localhost")`,
		Make: func(ctx context.Context, e *Env) error { return ping(ctx, e, "mongodb://ada:byron@"+host(e.Auth())) },
	},
	{
		Name: "wrong authentication database", Code: `allium.Open("mongodb://ada:lovelace@localhost/app")`,
		Make: func(ctx context.Context, e *Env) error {
			return ping(ctx, e, "mongodb://ada:lovelace@"+host(e.Auth())+"/app")
		},
	},
	{
		Name: "no user", Code: `users.FindOne(ctx, bson.M{})`,
		Make: func(ctx context.Context, e *Env) error {
			return second(e.client("mongodb://"+host(e.Auth())).Database("app").Collection("users").FindOne(ctx,
				bson.M{}))
		},
	},
	{
		Name: "user without the right", Code: `users.InsertOne(ctx, user) // with the role read`,
		Make: func(ctx context.Context, e *Env) error {
			d := e.Auth()
			if err := d.AddUser(mongotest.User{Name: "reader", Password: "r", Roles: []string{"read"}}); err != nil {
				return err
			}
			client := e.client("mongodb://"+host(d),
				allium.ClientOptions{Credential: &auth.Credential{Username: "reader", Password: "r"}})
			return second(client.Database("app").Collection("users").InsertOne(ctx,
				bson.D{{Key: "name", Value: "Ada"}}))
		},
	},
	{
		Name: "write to a secondary", Code: `users.InsertOne(ctx, user) // ?directConnection=true`,
		Make: func(ctx context.Context, e *Env) error {
			d := e.Deployment("three", mongotest.ReplicaSet(3), mongotest.Version("8.0"))
			addr := d.Secondaries()[0].Addr()
			e.Show(addr, "localhost:27018")
			client := e.client("mongodb://" + addr + "/?directConnection=true")
			return second(client.Database("app").Collection("users").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}))
		},
	},
	{
		Name: "set without a primary", Code: `users.InsertOne(ctx, user)`,
		Make: func(ctx context.Context, e *Env) error {
			d := e.Deployment("headless", mongotest.ReplicaSet(2), mongotest.Version("8.0"),
				mongotest.ElectionDelay(time.Hour))
			// A monitor that polls does not hear of it before the insert does, and asks again
			// half a second later.
			client := e.client("mongodb://"+strings.Join(d.Hosts(), ",")+"/?replicaSet=rs0&serverMonitoringMode=poll",
				allium.ClientOptions{ServerSelectionTimeout: new(10 * time.Second)})
			if err := client.Ping(ctx); err != nil {
				return err
			}
			d.StepDown()
			ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
			defer cancel()
			return second(client.Database("app").Collection("users").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}))
		},
		Do: "Look at the members (`allium doctor URI`): an election takes seconds, a lasting lack of a primary means that a majority of the voting members cannot be reached.",
	},
	{
		Name: "no member has the tags", Code: `allium.Open("mongodb://localhost/?readPreference=secondary&readPreferenceTags=region:mars")`,
		Make: func(ctx context.Context, e *Env) error {
			d := e.Deployment("three", mongotest.ReplicaSet(3), mongotest.Version("8.0"))
			return ping(ctx, e, d.URI()+"&readPreference=secondary&readPreferenceTags=region:mars")
		},
	},
	{
		Name: "all connections in use", Code: `users.FindOne(ctx, filter) // maxPoolSize=1, and another operation holds the connection`,
		Make: func(ctx context.Context, e *Env) error {
			d := e.Deployment("busy", mongotest.Standalone(), mongotest.Version("8.0"))
			d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: time.Hour, Times: 1})
			client := e.client(d.URI(),
				allium.ClientOptions{MaxPoolSize: new(1), ServerSelectionTimeout: new(10 * time.Second)})
			users := client.Database("app").Collection("users")
			if err := client.Ping(ctx); err != nil {
				return err
			}
			slow, stop := context.WithCancel(ctx)
			started := make(chan struct{})
			done := make(chan struct{})
			d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name == "find" {
					close(started)
				}
				return nil, nil
			})
			go func() { defer close(done); users.FindOne(slow, bson.M{}) }()
			<-started
			defer func() { stop(); <-done }()
			return second(users.FindOne(ctx, bson.M{}, allium.FindOneOptions{Timeout: new(100 * time.Millisecond)}))
		},
		Do: "Bound how many operations run at once, close cursors, or raise maxPoolSize.",
	},
	{
		Name: "client that was closed", Code: `client.Close(ctx); users.FindOne(ctx, filter)`,
		Make: func(ctx context.Context, e *Env) error {
			client := e.client("mongodb://" + host(e.Standalone()))
			client.Close(ctx)
			return second(client.Database("app").Collection("users").FindOne(ctx, bson.M{}))
		},
	},
	{
		Name: "write concern that more members must confirm than there are",
		Code: `users.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 5}}).InsertOne(ctx, user)`,
		Make: func(ctx context.Context, e *Env) error {
			users := e.users().With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 5}})
			return second(users.InsertOne(ctx, bson.D{{Key: "_id", Value: 3}}))
		},
	},
}}

// dialFunc is a dialer.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (f dialFunc) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f(ctx, network, address)
}
