package mongotest

import (
	"log/slog"
	"regexp"
	"strings"
	"time"

	"allium/mongotest/internal/account"
	"allium/mongotest/internal/flavour"
	"allium/mongotest/internal/release"
)

// Option configures a deployment.
type Option func(*options)

type options struct {
	kind             kind
	setName          string
	members          []Member
	shards, mongoses int
	shardMembers     []Member // of each shard; none: an ordinary one
	version          string
	like             string
	parameters       []parameter
	port             int
	inMemory         bool
	socketDir        string
	bind             []string // hosts; empty: 127.0.0.1
	socket           string   // of the first node, empty: none
	advertise        string
	tls              bool
	user, password   string
	oidc             []account.IdentityProvider
	acceptor         account.Kerberos
	electionDelay    time.Duration
	lag              time.Duration
	noScripting      bool
	snapshotCommands bool
	search           *time.Duration
	searchEngine     SearchEngine
	log              *slog.Logger
	prepare          []func(*Deployment) error // in the order of the options
	onPanic          func(v any, stack []byte)
}

type parameter struct {
	name  string
	value any
}

type kind int

const (
	standalone kind = iota
	replicaSet
	sharded
	loadBalanced
	dataLake
)

// Standalone is a single mongod without replication. It is the default.
func Standalone() Option { return func(o *options) { o.kind, o.members = standalone, nil } }

// ReplicaSet is a replica set of n ordinary members, named "rs0". See Members for others.
func ReplicaSet(n int) Option {
	return func(o *options) { o.kind, o.members = replicaSet, make([]Member, n) }
}

// SetName sets the name of the replica set. The default is "rs0".
func SetName(name string) Option { return func(o *options) { o.setName = name } }

// Members is a replica set of these members.
func Members(members ...Member) Option {
	return func(o *options) { o.kind, o.members = replicaSet, members }
}

// ElectionDelay is how long a replica set that has lost its primary waits before it elects another
// one, as real members wait for their election timeout. The default is 0: the call that removes the
// primary returns after the election. [Node.StepUp] does not wait.
func ElectionDelay(d time.Duration) Option { return func(o *options) { o.electionDelay = d } }

// ReplicationLag makes the secondaries of a replica set apply writes with this delay: their reads
// are stale, and write concerns and the majority commit point wait for them. The default is 0: a
// write that is acknowledged is on all members. See [Node.SetLag].
func ReplicationLag(d time.Duration) Option { return func(o *options) { o.lag = d } }

// Sharded is a sharded cluster. Clients talk to its mongoses; a sharded collection is distributed
// by its shard key over the shards behind them, which are named sh0, sh1 and so on.
func Sharded(shards, mongoses int) Option {
	return func(o *options) { o.kind, o.shards, o.mongoses = sharded, shards, mongoses }
}

// ShardMembers makes each shard of a sharded or load-balanced cluster a replica set of n ordinary
// members. The default is 1: starting a shard costs as much as starting a replica set. See
// [Deployment.Shards].
func ShardMembers(n int) Option { return func(o *options) { o.shardMembers = make([]Member, n) } }

// LoadBalanced is a sharded cluster whose mongoses stand behind a load balancer: hello carries a
// serviceId, and a client that does not declare loadBalanced is rejected. The load balancer passes
// new connections to the mongoses in turn; a second one has only the first mongos behind it (see
// [Deployment.SingleMongosURI]).
func LoadBalanced(mongoses int) Option {
	return func(o *options) { o.kind, o.shards, o.mongoses = loadBalanced, 1, mongoses }
}

// DataLake is a deployment that behaves as Atlas Data Lake does, or rather its test service: it
// only reads, has the cursors in a database of their own, "cursors", and no sessions or
// transactions to kill. Its collection test.driverdata has 15 documents with a from 1 to 15, b = a
// + 1 and c = a + 2. Its accounts are "mhuser", whom URI names, "sha1" and "sha256", the last two
// with one mechanism each; their password is "pencil". Clients that do not authenticate can ping.
func DataLake() Option { return func(o *options) { o.kind, o.members = dataLake, nil } }

// Version sets the server version: "4.2" to "9.0", with or without a patch level. The default is
// "8.0".
func Version(v string) Option { return func(o *options) { o.version = v } }

// Like makes a deployment refuse what another server or a service refuses, with its errors: one of
// [Likes], such as "documentdb". It has that server's version unless [Version] says another one.
// What is refused is what its documentation lists, where mongotest would have it:
// docs/other-servers.md has the table. All else is as on a server of MongoDB's, so that a program
// that passes has not met these limits, which does not make it one that works there. What fills the
// deployment ([Seed], [Prepare]) may do everything.
func Like(name string) Option { return func(o *options) { o.like = name } }

// Likes returns the names that [Like] accepts.
func Likes() []string { return flavour.Names() }

// Versions returns the versions that Version accepts, one for each series with its patch level, the
// oldest first.
func Versions() []string {
	var all []string
	for _, v := range release.Versions() {
		all = append(all, v.String())
	}
	return all
}

// Parameter sets a server parameter at startup, as --setParameter does, including one that cannot
// be changed later.
func Parameter(name string, value any) Option {
	return func(o *options) { o.parameters = append(o.parameters, parameter{name, value}) }
}

// Search lets a deployment keep search indexes, as one on Atlas does: they can be created, updated,
// dropped and listed. An index is PENDING and BUILDING until it is READY after this time on the
// deployment's clock ([Deployment.ShiftClock]); 0 makes it ready at once. Stages that search, such
// as $search, are refused nevertheless, unless [SearchWith] gives the deployment an engine. Without
// either the commands are refused, too.
func Search(build time.Duration) Option { return func(o *options) { o.search = &build } }

// Prepare calls a function when the deployment is complete and nobody can reach it, but through
// [Deployment.Inside]. An error ends the start. Functions, [Seed], [SeedFile] and [Scripts] take
// place in the order of the options.
func Prepare(f func(d *Deployment) error) Option { return prepared(f) }

func prepared(f func(*Deployment) error) Option {
	return func(o *options) { o.prepare = append(o.prepare, f) }
}

// NoScripting makes a deployment without JavaScript, as --noscripting does: $where, $function,
// $accumulator and mapReduce are refused with the server's errors.
func NoScripting() Option { return func(o *options) { o.noScripting = true } }

// Port makes the deployment listen on this port and the ones after it. By default it picks free
// ports. The hosts of the connection string come first: a load balancer has this port, the one in
// front of a single mongos the next, and the mongoses the others.
func Port(first int) Option { return func(o *options) { o.port = first } }

// InMemory makes the deployment listen on a network in memory instead of loopback: clients connect
// with [Deployment.DialContext]. It waits on channels and timers only, so a deployment that is
// started inside a testing/synctest bubble runs on the bubble's clock.
func InMemory() Option { return func(o *options) { o.inMemory = true } }

// Bind makes the deployment listen on these hosts, names or addresses of either version, instead of
// 127.0.0.1; each node has the same port on all of them. One that begins with a slash is the path
// of a Unix socket, which the first node listens on as well; a file that nobody listens on is
// replaced. Whoever reaches the hosts can do everything, unless [Auth] keeps them from it.
func Bind(hosts ...string) Option {
	return func(o *options) {
		o.bind, o.socket = nil, ""
		for _, h := range hosts {
			if strings.HasPrefix(h, "/") {
				o.socket = h
			} else {
				o.bind = append(o.bind, h)
			}
		}
	}
}

// hosts returns where the nodes listen.
func (o *options) hosts() []string {
	if len(o.bind) == 0 {
		return []string{"127.0.0.1"}
	}
	return o.bind
}

// Advertise is the host under which clients reach the nodes, in the connection string and in the
// configuration of replica sets: a name that containers resolve, for example. The default is the
// first host of [Bind], and 127.0.0.1.
func Advertise(host string) Option { return func(o *options) { o.advertise = host } }

// UnixSockets makes every node listen on a socket in this folder as well: see [Node.SocketPath].
func UnixSockets(dir string) Option { return func(o *options) { o.socketDir = dir } }

// TLS makes the deployment accept TLS connections only, with certificates for localhost that it
// generates. It requests a client certificate, but does not require one.
func TLS() Option { return func(o *options) { o.tls = true } }

// Auth enables authentication and adds a user with the role root.
func Auth(user, password string) Option {
	return func(o *options) { o.user, o.password = user, password }
}

// IdentityProvider is an identity provider whose tokens a deployment accepts (see OIDC).
type IdentityProvider struct {
	Issuer        string
	ClientID      string   // empty: the provider is for services only
	RequestScopes []string // further scopes that a person's client requests
	// Match is a regular expression that the names of this provider's users match. Empty: all.
	Match string
}

// OIDC enables authentication with access tokens (mechanism MONGODB-OIDC). User.AccessTokens lists
// the tokens of each user: they can be any strings, since nobody signs them. A client without a
// token is sent the provider that its user name matches, or the only one. OIDC panics if Match is
// not a regular expression.
func OIDC(providers ...IdentityProvider) Option {
	list := make([]account.IdentityProvider, 0, len(providers))
	for _, p := range providers {
		idp := account.IdentityProvider{Issuer: p.Issuer, ClientID: p.ClientID, RequestScopes: p.RequestScopes}
		if p.Match != "" {
			idp.Match = regexp.MustCompile(p.Match)
		}
		list = append(list, idp)
	}
	return func(o *options) { o.oidc = list }
}

// Log makes the deployment log every command. Bodies of commands that carry credentials are left
// out.
func Log(l *slog.Logger) Option { return func(o *options) { o.log = l } }
