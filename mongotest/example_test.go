package mongotest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/mongotest/search"
)

// open and connect make the examples shorter: in a test, use Start and t.Fatal.
func open(opts ...mongotest.Option) *mongotest.Deployment {
	d, err := mongotest.Open(opts...)
	if err != nil {
		panic(err)
	}
	return d
}

func connect(uri string, opts ...allium.ClientOptions) *allium.Client {
	client, err := allium.Open(uri, opts...)
	if err != nil {
		panic(err)
	}
	return client
}

// insertUser inserts a document into app.users.
func insertUser(client *allium.Client, id any) error {
	_, err := client.Database("app").Collection("users").InsertOne(context.Background(), bson.D{{Key: "_id", Value: id}})
	return err
}

// countUsers counts the documents in app.users.
func countUsers(client *allium.Client) int64 {
	n, err := client.Database("app").Collection("users").CountDocuments(context.Background(), bson.D{})
	if err != nil {
		panic(err)
	}
	return n
}

// helloReply asks a server what it is.
func helloReply(client *allium.Client) bson.Raw {
	reply, err := client.Database("admin").RunCommand(context.Background(), bson.D{{Key: "hello", Value: 1}})
	if err != nil {
		panic(err)
	}
	return reply
}

// fakeT stands for the *testing.T that a test has.
type fakeT struct{ cleanup func() }

// password is a stand-in for Kerberos that shows the shape of the two sides: the token is the name
// and a password, and messages are not protected. The package kerberostest of the module
// allium/kerberos has the real service's side, and package kerberos the client's.
type password string

func (p password) Accept(token []byte) ([]byte, mongotest.AcceptedContext, error) {
	name, secret, _ := strings.Cut(string(token), ":")
	if secret != string(p) {
		return nil, nil, fmt.Errorf("%s has another password", name)
	}
	return []byte("welcome"), toyContext{name: name}, nil
}

func (p password) Begin(_ context.Context, params auth.GSSAPIParams) (auth.GSSAPIContext, error) {
	return toyContext{name: params.Username, secret: p}, nil
}

type toyContext struct {
	name   string
	secret password
}

func (c toyContext) Refused()                              {}
func (c toyContext) Principal() string                     { return c.name }
func (c toyContext) Wrap(message []byte) ([]byte, error)   { return message, nil }
func (c toyContext) Unwrap(message []byte) ([]byte, error) { return message, nil }
func (c toyContext) Step(token []byte) ([]byte, bool, error) {
	if token == nil {
		return []byte(c.name + ":" + string(c.secret)), false, nil
	}
	return nil, true, nil
}

// The first insert fails with a network error; the driver retries it, so that the caller does not
// notice.
func ExampleDeployment_FailCommand() {
	d := open(mongotest.ReplicaSet(1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, CloseConnection: true})
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// The driver finds the new primary by itself.
func ExampleDeployment_StepDown() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	before := d.Primary()
	for i := range 3 {
		if i == 1 {
			d.StepDown()
		}
		if err := insertUser(client, i); err != nil {
			panic(err)
		}
	}
	fmt.Println(countUsers(client), d.Primary() != before)
	// Output: 3 true
}

// A secondary that is held back does not see new writes, and w: 2 on two members waits for it in
// vain.
func ExampleNode_HoldBack() {
	d := open(mongotest.ReplicaSet(2))
	defer d.Stop()
	client := connect(d.URI() + "&w=2&wTimeoutMS=1")
	defer client.Close(context.Background())
	behind := d.Secondaries()[0]
	behind.HoldBack()
	fmt.Println("timed out:", mongoerr.IsTimeout(insertUser(client, 1)))
	behind.CatchUp()
	fmt.Println(insertUser(client, 2))
	// Output:
	// timed out: true
	// <nil>
}

// A secondary that falls behind, and is brought up to date.
func ExampleNode_SetLag() {
	d := open(mongotest.ReplicaSet(2))
	defer d.Stop()
	client := connect(d.URI() + "&w=2&wTimeoutMS=1")
	defer client.Close(context.Background())
	slow := d.Secondaries()[0]
	slow.SetLag(time.Hour)
	fmt.Println("timed out:", mongoerr.IsTimeout(insertUser(client, 1)))
	slow.SetLag(0)
	fmt.Println(insertUser(client, 2))
	// Output:
	// timed out: true
	// <nil>
}

// A client that shall talk to one mongos only, for instance because a fail point is set on that
// one.
func ExampleDeployment_SingleMongosURI() {
	ctx := context.Background()
	d := open(mongotest.LoadBalanced(2))
	defer d.Stop()
	client := connect(d.SingleMongosURI())
	defer client.Close(ctx)
	d.Node(0).FailCommand(mongotest.Fail{Commands: []string{"ping"}, Times: 1, Code: 8})
	fmt.Println(mongoerr.HasCode(client.Ping(ctx), 8))
	fmt.Println(client.Ping(ctx))
	// Output:
	// true
	// <nil>
}

// A session that expires after an hour, without waiting for it.
func ExampleDeployment_ShiftClock() {
	ctx := context.Background()
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(ctx)
	sessions := client.Database("app").Collection("sessions")
	if _, err := sessions.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfter: new(time.Hour)}); err != nil {
		panic(err)
	}
	if _, err := sessions.InsertOne(ctx, bson.D{{Key: "at", Value: time.Now()}}); err != nil {
		panic(err)
	}
	d.ShiftClock(2 * time.Hour)
	n, err := sessions.CountDocuments(ctx, bson.D{})
	fmt.Println(n, err)
	// Output: 0 <nil>
}

// A program that serves a deployment lets commands end before it leaves.
func ExampleDeployment_Shutdown() {
	d := open()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(d.Shutdown(ctx))
	// Output: <nil>
}

// A program that serves a deployment leaves when a client has ended its last process.
func ExampleDeployment_Done() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	_, err := client.Database("admin").RunCommand(context.Background(), bson.D{{Key: "shutdown", Value: 1}})
	<-d.Done()
	fmt.Println(err != nil) // the connection is closed in the place of an answer
	// Output: true
}

// Only one of two mongoses fails. The driver tries the read once more.
func ExampleNode_FailCommand() {
	d := open(mongotest.Sharded(1, 2))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	d.Node(0).FailCommand(mongotest.Fail{Commands: []string{"aggregate"}, Times: 1, Code: 6})
	for range 5 {
		countUsers(client)
	}
	d.ClearFailures()
	fmt.Println(countUsers(client))
	// Output: 0
}

// One shard of two is down for a moment: the commands that need it wait.
func ExampleShard_Node() {
	d := open(mongotest.Sharded(2, 1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	down := d.Shards()[0].Node() // the first database is there
	down.Kill()
	go func() {
		if err := down.Restart(); err != nil {
			panic(err)
		}
	}()
	fmt.Println(insertUser(client, 1), countUsers(client))
	// Output: <nil> 1
}

func ExampleShard_Name() {
	d := open(mongotest.Sharded(2, 1))
	defer d.Stop()
	fmt.Println(d.Shards()[1].Name())
	// Output: sh1
}

// A shard of three members has another primary when one fails: a mongos goes on with that.
func ExampleShardMembers() {
	d := open(mongotest.Sharded(2, 1), mongotest.ShardMembers(3))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	d.Shards()[0].Primary().Kill()
	fmt.Println(insertUser(client, 1), countUsers(client))
	// Output: <nil> 1
}

// Mongoses go on without config servers, but cannot make a database.
func ExampleDeployment_ConfigServers() {
	d := open(mongotest.Sharded(2, 1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	config := d.ConfigServers()
	config.Primary().Kill()
	fmt.Println(config.Name(), config.Primary() == nil)
	fmt.Println(insertUser(client, 2), countUsers(client))
	// Output:
	// config true
	// <nil> 2
}

func ExampleShard_Nodes() {
	d := open(mongotest.Sharded(2, 1), mongotest.ShardMembers(3))
	defer d.Stop()
	fmt.Println(len(d.Shards()[1].Nodes()))
	// Output: 3
}

func ExampleShard_Primary() {
	d := open(mongotest.Sharded(2, 1), mongotest.ShardMembers(3))
	defer d.Stop()
	s := d.Shards()[1]
	old := s.Primary()
	old.Hang()
	fmt.Println(s.Primary() == old, s.Primary() == nil)
	// Output: false false
}

// What the other members of a shard never had is lost with its primary.
func ExampleShard_Secondaries() {
	d := open(mongotest.Sharded(1, 1), mongotest.ShardMembers(3), mongotest.Version("4.4")) // which acknowledges what the primary has
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	for _, n := range d.Shards()[0].Secondaries() {
		n.HoldBack()
	}
	fmt.Println(insertUser(client, 1), countUsers(client))
	d.Shards()[0].Primary().Kill()
	fmt.Println(countUsers(client))
	// Output:
	// <nil> 1
	// 0
}

func ExampleShard_StepDown() {
	d := open(mongotest.Sharded(2, 1), mongotest.ShardMembers(3))
	defer d.Stop()
	s := d.Shards()[0]
	old := s.Primary()
	s.StepDown()
	fmt.Println(s.Primary() == old)
	// Output: false
}

// A client that connects to a shard sees what that has.
func ExampleDeployment_Shards() {
	d := open(mongotest.Sharded(2, 1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	for _, s := range d.Shards() {
		direct := connect("mongodb://" + s.Node().Addr() + "/?directConnection=true")
		fmt.Println(s.Name(), countUsers(direct))
		direct.Close(context.Background())
	}
	// Output:
	// sh0 1
	// sh1 0
}

// A reply is cut off after ten bytes: the write was executed, but the client does not know. It
// tries again, and the server does not do it twice.
func ExampleNode_SetNetFaults() {
	d := open(mongotest.ReplicaSet(1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Primary().SetNetFaults(mongotest.NetFaults{DropAfter: 10, Times: 1})
	err := insertUser(client, 2)
	d.Primary().SetNetFaults(mongotest.NetFaults{})
	fmt.Println(err, countUsers(client))
	// Output: <nil> 2
}

// The insert runs, its reply does not come.
func ExampleNode_HoldReplies() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Primary().HoldReplies()
	done := make(chan error)
	go func() { done <- insertUser(client, 2) }()
	select {
	case <-done:
		fmt.Println("the reply came")
	case <-time.After(20 * time.Millisecond):
	}
	d.Primary().ReleaseReplies()
	fmt.Println(<-done, countUsers(client))
	// Output: <nil> 2
}

// A client whose idle connections break does not notice.
func ExampleNode_CloseConnections() {
	d := open(mongotest.ReplicaSet(1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Primary().CloseConnections()
	fmt.Println(insertUser(client, 2), countUsers(client))
	// Output: <nil> 2
}

func ExampleNode_RefuseConnections() {
	d := open()
	defer d.Stop()
	d.Node(0).RefuseConnections()
	_, err := d.DialContext(context.Background(), "tcp", d.Node(0).Addr())
	fmt.Println(err != nil)
	if err := d.Node(0).AcceptConnections(); err != nil {
		panic(err)
	}
	client := connect(d.URI())
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output:
	// true
	// <nil>
}

// A hook sees each command before it runs, and may answer in the server's place.
func ExampleDeployment_OnCommand() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	var mu sync.Mutex
	var seen []string
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		switch c.Name {
		case "insert":
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, c.DB+"."+c.Name)
		case "count":
			return bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 42}})
		}
		return nil, nil // let it run
	})
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	n, err := client.Database("app").Collection("users").EstimatedDocumentCount(context.Background())
	mu.Lock()
	defer mu.Unlock()
	fmt.Println(seen, n, err)
	// Output: [app.insert] 42 <nil>
}

// The primary dies, and comes back as a secondary.
func ExampleNode_Kill() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	old := d.Primary()
	old.Kill()
	fmt.Println(insertUser(client, 2), d.Primary() != old)
	if err := old.Restart(); err != nil {
		panic(err)
	}
	fmt.Println(len(d.Secondaries()))
	// Output:
	// <nil> true
	// 2
}

// A chosen member becomes the primary.
func ExampleNode_StepUp() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	next := d.Secondaries()[1]
	if err := next.StepUp(); err != nil {
		panic(err)
	}
	fmt.Println(d.Primary() == next)
	next.StepDown(time.Hour) // and is not elected again for an hour
	fmt.Println(d.Primary() == next)
	// Output:
	// true
	// false
}

// A primary that is cut off from the others steps down, and they elect another one.
func ExampleNode_Partition() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	old := d.Primary()
	old.Partition()
	fmt.Println(d.Primary() != old)
	old.Heal()
	client := connect(d.URI() + "&w=3")
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output:
	// true
	// <nil>
}

// The primary stops answering without closing its connections. A write that waits for it times out,
// and other clients find the member that has taken over.
func ExampleNode_Hang() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	old := d.Primary()
	direct := connect("mongodb://" + old.Addr() + "/?directConnection=true")
	defer direct.Close(context.Background())
	if err := insertUser(direct, 1); err != nil {
		panic(err)
	}
	old.Hang()
	defer old.Resume()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := direct.Database("app").Collection("users").InsertOne(ctx, bson.D{{Key: "_id", Value: 2}})
	fmt.Println(mongoerr.IsTimeout(err), d.Primary() != old)
	client := connect(d.URI())
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 3), countUsers(client))
	// Output:
	// true true
	// <nil> 2
}

// A process that goes on where it stopped answers what came meanwhile.
func ExampleNode_Resume() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Node(0).Hang()
	done := make(chan error)
	go func() { done <- insertUser(client, 2) }()
	select {
	case <-done:
		fmt.Println("the reply came")
	case <-time.After(20 * time.Millisecond):
	}
	d.Node(0).Resume()
	fmt.Println(<-done, countUsers(client))
	// Output: <nil> 2
}

func (t *fakeT) Helper()                     {}
func (t *fakeT) Cleanup(f func())            { t.cleanup = f }
func (t *fakeT) Errorf(f string, a ...any)   { panic(fmt.Sprintf(f, a...)) }
func (t *fakeT) Fatalf(f string, a ...any)   { panic(fmt.Sprintf(f, a...)) }
func (t *fakeT) run(test func(mongotest.TB)) { test(t); t.cleanup() }

// The deployment is ready when Start returns and is gone when the test ends.
func ExampleStart() {
	t := &fakeT{} // in a test: its *testing.T
	t.run(func(t mongotest.TB) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3))
		client := connect(d.URI())
		defer client.Close(context.Background())
		fmt.Println(insertUser(client, 1), countUsers(client))
	})
	// Output: <nil> 1
}

func ExampleStandalone() {
	d := open(mongotest.Standalone())
	defer d.Stop()
	fmt.Println(len(d.Nodes()), strings.Contains(d.URI(), "replicaSet"))
	// Output: 1 false
}

func ExampleReplicaSet() {
	d := open(mongotest.ReplicaSet(3), mongotest.SetName("orders"))
	defer d.Stop()
	fmt.Println(len(d.Hosts()), len(d.Secondaries()), strings.HasSuffix(d.URI(), "/?replicaSet=orders"))
	// Output: 3 2 true
}

// A primary, a hidden member in another data centre, and an arbiter.
func ExampleMembers() {
	d := open(mongotest.Members(
		mongotest.Member{Tags: map[string]string{"dc": "east"}},
		mongotest.Member{Hidden: true, Tags: map[string]string{"dc": "west"}},
		mongotest.Member{Arbiter: true},
	))
	defer d.Stop()
	fmt.Println(d.Primary() == d.Node(0), len(d.Secondaries()), strings.Contains(d.URI(), d.Node(1).Addr()))
	// Output: true 1 false
}

func ExampleSharded() {
	d := open(mongotest.Sharded(2, 2))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	who, _ := helloReply(client).Lookup("msg").StringValue()
	fmt.Println(len(d.Nodes()), who)
	// Output: 2 isdbgrid
}

func ExampleLoadBalanced() {
	d := open(mongotest.LoadBalanced(2))
	defer d.Stop()
	fmt.Println(len(d.Nodes()), len(d.Hosts()), strings.HasSuffix(d.URI(), "/?loadBalanced=true"))
	// Output: 2 1 true
}

// A server of a series that has the wire version 9.
func ExampleVersion() {
	d := open(mongotest.Version("4.4"))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	fmt.Println(helloReply(client).Lookup("maxWireVersion"))
	// Output: 9
}

// Run a test against every version.
func ExampleVersions() {
	for _, v := range mongotest.Versions() {
		d := open(mongotest.Version(v))
		client := connect(d.URI())
		if err := insertUser(client, 1); err != nil {
			fmt.Println(v, err)
		}
		client.Close(context.Background())
		d.Stop()
	}
	// Output:
}

// A server that answers only those who declare an API version.
func ExampleParameter() {
	d := open(mongotest.Parameter("requireApiVersion", true))
	defer d.Stop()
	for _, api := range []*allium.ServerAPI{nil, {Version: "1"}} {
		client := connect(d.URI(), allium.ClientOptions{ServerAPI: api})
		fmt.Println(insertUser(client, 1) == nil)
		client.Close(context.Background())
	}
	// Output:
	// false
	// true
}

// Known ports, for a client that is configured somewhere else.
func ExampleSearch() {
	d := open(mongotest.Search(time.Minute), mongotest.ReplicaSet(1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	ctx := context.Background()
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	users := client.Database("app").Collection("users")
	mappings := bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}}
	if _, err := users.CreateSearchIndex(ctx, allium.SearchIndexModel{Name: "names", Definition: mappings}); err != nil {
		panic(err)
	}
	for range 2 {
		cur, err := users.ListSearchIndexes(ctx, allium.ListSearchIndexesOptions{Name: "names"})
		if err != nil {
			panic(err)
		}
		list, err := cur.All(ctx)
		if err != nil {
			panic(err)
		}
		fmt.Println(list[0].Status, list[0].Queryable)
		d.ShiftClock(time.Minute)
	}
	// Output:
	// PENDING false
	// READY true
}

func ExampleNoScripting() {
	d := open(mongotest.NoScripting())
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	_, err := client.Database("app").Collection("users").FindOne(context.Background(), bson.D{{Key: "$where", Value: "this.age > 18"}})
	_, message, _ := strings.Cut(err.Error(), ": ")
	fmt.Println(message)
	// Output: BadValue (2): no globalScriptEngine in $where parsing
}

func ExamplePort() {
	free, err := net.Listen("tcp", "127.0.0.1:0") // any number will do
	if err != nil {
		panic(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	d := open(mongotest.Port(port))
	defer d.Stop()
	fmt.Println(d.URI() == fmt.Sprintf("mongodb://127.0.0.1:%d/", port))
	// Output: true
}

// Nothing listens on a real network: the deployment is the client's dialer.
func ExampleInMemory() {
	d := open(mongotest.ReplicaSet(3), mongotest.InMemory())
	defer d.Stop()
	client := connect(d.URI(), allium.ClientOptions{Dialer: d})
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1), d.Hosts())
	// Output: <nil> [localhost:27017 localhost:27018 localhost:27019]
}

// A connection of one's own, for a test that looks at bytes.
func ExampleDeployment_DialContext() {
	d := open(mongotest.InMemory())
	defer d.Stop()
	c, err := d.DialContext(context.Background(), "tcp", d.Node(0).Addr())
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(c.RemoteAddr())
	// Output: localhost:27017
}

func ExampleUnixSockets() {
	dir, err := os.MkdirTemp("", "sockets")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	d := open(mongotest.UnixSockets(dir))
	defer d.Stop()
	path := strings.ReplaceAll(d.Node(0).SocketPath(), "/", "%2F")
	client := connect("mongodb://" + path + "/")
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// The connection string has the credentials; one without them may connect, but not do much.
func ExampleAuth() {
	d := open(mongotest.Auth("root", "open sesame"))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	stranger := connect("mongodb://" + d.Hosts()[0] + "/")
	defer stranger.Close(context.Background())
	fmt.Println(insertUser(stranger, 2) != nil)
	// Output:
	// <nil>
	// true
}

func ExampleDeployment_AddUser() {
	d := open(mongotest.Auth("root", "open sesame"))
	defer d.Stop()
	if err := d.AddUser(mongotest.User{Name: "app", Password: "secret", DB: "app", Roles: []string{"readWrite"}, Mechanisms: []string{"SCRAM-SHA-256"}}); err != nil {
		panic(err)
	}
	client := connect("mongodb://app:secret@" + d.Hosts()[0] + "/?authSource=app")
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// Whose an access token is is written down with the user. With other ones the old ones are no
// longer valid.
func ExampleOIDC() {
	d := open(mongotest.OIDC(mongotest.IdentityProvider{Issuer: "https://idp.example"}))
	defer d.Stop()
	if err := d.AddUser(mongotest.User{Name: "app", DB: "$external", Roles: []string{"readWriteAnyDatabase"}, AccessTokens: []string{"abc"}}); err != nil {
		panic(err)
	}
	client := connect("mongodb://"+d.Hosts()[0]+"/?authMechanism=MONGODB-OIDC", allium.ClientOptions{OIDC: &auth.OIDC{
		Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return auth.OIDCCredential{AccessToken: "abc"}, nil
		},
	}})
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

func ExampleTLS() {
	d := open(mongotest.TLS())
	defer d.Stop()
	client := connect(d.URI(), allium.ClientOptions{TLS: d.TLSConfig()})
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// A deployment authenticates with what accepts security contexts.
func ExampleGSSAPI() {
	d := open(mongotest.GSSAPI(password("secret")))
	defer d.Stop()
	if err := d.AddUser(mongotest.User{Name: "ada@EXAMPLE.COM", DB: "$external", Roles: []string{"root"}}); err != nil {
		panic(err)
	}
	client := connect("mongodb://ada%40EXAMPLE.COM@"+d.Hosts()[0]+"/?authMechanism=GSSAPI", allium.ClientOptions{GSSAPI: password("secret")})
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// Files for clients that take no tls.Config, here to authenticate with the certificate.
func ExampleDeployment_WriteTLSFiles() {
	d := open(mongotest.TLS(), mongotest.Auth("root", "open sesame"))
	defer d.Stop()
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ca, certKey, err := d.WriteTLSFiles(dir)
	if err != nil {
		panic(err)
	}
	if err := d.AddUser(mongotest.User{Name: d.ClientSubject(), DB: "$external", Roles: []string{"root"}}); err != nil {
		panic(err)
	}
	client := connect("mongodb://" + d.Hosts()[0] + "/?authMechanism=MONGODB-X509&tlsCAFile=" + ca + "&tlsCertificateKeyFile=" + certKey)
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// Every command is logged; those with credentials without their bodies.
func ExampleLog() {
	var log bytes.Buffer
	d := open(mongotest.Log(slog.New(slog.NewTextHandler(&log, nil))))
	client := connect(d.URI())
	err := insertUser(client, 1)
	client.Close(context.Background())
	d.Stop()
	fmt.Println(err, strings.Contains(log.String(), "command=insert"))
	// Output: <nil> true
}

// A set that is without a primary for a while, as a real one is after a crash: the driver waits,
// and the insert succeeds.
func ExampleElectionDelay() {
	d := open(mongotest.ReplicaSet(3), mongotest.ElectionDelay(20*time.Millisecond))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	d.StepDown()
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// Code that writes with w: 1 and reads from a secondary does not find what it wrote.
func ExampleReplicationLag() {
	d := open(mongotest.ReplicaSet(2), mongotest.ReplicationLag(time.Hour))
	defer d.Stop()
	client := connect(d.URI() + "&w=1&readPreference=secondary")
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	fmt.Println(countUsers(client))
	d.Secondaries()[0].SetLag(0)
	fmt.Println(countUsers(client))
	// Output:
	// 0
	// 1
}

// A data lake is read, and its cursors are in a database of their own.
func ExampleDataLake() {
	d := open(mongotest.DataLake())
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	n, err := client.Database("test").Collection("driverdata").CountDocuments(context.Background(), bson.D{})
	fmt.Println(n, err)
	e, _ := errors.AsType[*mongoerr.ServerError](insertUser(client, 1))
	fmt.Println(e.Message)
	// Output:
	// 15 <nil>
	// insert is not supported by Atlas Data Lake
}

// A client that has been closed leaves no connection.
func ExampleNode_Connections() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	fmt.Println(d.Node(0).Connections() > 0)
	client.Close(context.Background())
	for d.Node(0).Connections() > 0 { // the server notices a moment later
		time.Sleep(time.Millisecond)
	}
	fmt.Println(d.Node(0).Connections())
	// Output:
	// true
	// 0
}

// A program moves to another authority. Here that of another deployment stands for it.
func ExampleDeployment_UseCertificate() {
	d, other := open(mongotest.TLS()), open(mongotest.TLS())
	defer d.Stop()
	defer other.Stop()
	next := other.TLSConfig()
	if err := d.UseCertificate(next.Certificates[0], next.RootCAs); err != nil {
		panic(err)
	}
	timeout := 500 * time.Millisecond
	for _, config := range []*tls.Config{d.TLSConfig(), next} {
		config.InsecureSkipVerify = true // the certificate is one for clients
		client := connect(d.URI(), allium.ClientOptions{TLS: config, ServerSelectionTimeout: &timeout})
		fmt.Println(insertUser(client, 1) == nil)
		client.Close(context.Background())
	}
	// Output:
	// false
	// true
}

// New connections fail while the servers show a certificate that clients do not trust.
func ExampleDeployment_ReplaceCertificate() {
	d := open(mongotest.TLS())
	defer d.Stop()
	timeout := 500 * time.Millisecond
	insert := func() error {
		client := connect(d.URI(), allium.ClientOptions{TLS: d.TLSConfig(), ServerSelectionTimeout: &timeout})
		defer client.Close(context.Background())
		return insertUser(client, 1)
	}
	if err := d.ReplaceCertificate(mongotest.ForeignCertificate); err != nil {
		panic(err)
	}
	fmt.Println(insert() != nil)
	if err := d.ReplaceCertificate(mongotest.ValidCertificate); err != nil {
		panic(err)
	}
	fmt.Println(insert())
	// Output:
	// true
	// <nil>
}

// Vectors are compared exactly: the scores are those of the documentation.
func ExampleSearchWith() {
	d := open(mongotest.SearchWith(search.Engine()))
	defer d.Stop()
	ctx := context.Background()
	client := connect(d.URI())
	defer client.Close(ctx)
	points := client.Database("app").Collection("points")
	for id, v := range [][]float64{{0, 1}, {1, 0}, {1, 1}} {
		if _, err := points.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "v", Value: v}}); err != nil {
			panic(err)
		}
	}
	_, err := points.CreateSearchIndex(ctx, allium.SearchIndexModel{Type: "vectorSearch", Definition: bson.D{{Key: "fields", Value: bson.A{bson.D{
		{Key: "type", Value: "vector"}, {Key: "path", Value: "v"}, {Key: "numDimensions", Value: 2}, {Key: "similarity", Value: "cosine"},
	}}}}})
	if err != nil {
		panic(err)
	}
	found, err := points.Aggregate(ctx, bson.A{
		bson.D{{Key: "$vectorSearch", Value: bson.D{
			{Key: "index", Value: "default"}, {Key: "path", Value: "v"}, {Key: "queryVector", Value: bson.A{2.0, 0.0}},
			{Key: "exact", Value: true}, {Key: "limit", Value: 2},
		}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "score", Value: bson.D{{Key: "$meta", Value: "vectorSearchScore"}}}}}},
	})
	if err != nil {
		panic(err)
	}
	for doc, err := range found.Seq(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(doc)
	}
	// Output:
	// {"_id":1,"score":1.0}
	// {"_id":2,"score":0.8535534143447876}
}
