package mongotest

import (
	"log/slog"
	"regexp"
	"time"

	"allium/mongotest/internal/account"
	"allium/mongotest/internal/release"
)

// Option chooses what Start starts.
type Option func(*options)

type options struct {
	kind             kind
	setName          string
	members          []Member
	shards, mongoses int
	version          string
	parameters       []parameter
	port             int
	inMemory         bool
	socketDir        string
	tls              bool
	user, password   string
	oidc             []account.IdentityProvider
	electionDelay    time.Duration
	lag              time.Duration
	log              *slog.Logger
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
)

// Standalone is a single mongod without replication. It is what Start starts when nothing else is asked for.
func Standalone() Option { return func(o *options) { o.kind, o.members = standalone, nil } }

// ReplicaSet is a replica set of n members with equal rights, named "rs0". See Members for anything else.
func ReplicaSet(n int) Option {
	return func(o *options) { o.kind, o.members = replicaSet, make([]Member, n) }
}

// SetName names the replica set something else than "rs0".
func SetName(name string) Option { return func(o *options) { o.setName = name } }

// Members is a replica set of these members.
func Members(members ...Member) Option {
	return func(o *options) { o.kind, o.members = replicaSet, members }
}

// ElectionDelay makes a replica set that has lost its primary elect another one only after this time, as real members do that
// wait for their election timeout. The default is 0: the election is over when the call returns that took the primary away.
// [Node.StepUp] does not wait.
func ElectionDelay(d time.Duration) Option { return func(o *options) { o.electionDelay = d } }

// ReplicationLag makes the secondaries of a replica set apply writes that much later: their reads are stale, and write concerns and
// the majority's commit point wait for them. The default is 0: a write is everywhere when it is acknowledged. See [Node.SetLag].
func ReplicationLag(d time.Duration) Option { return func(o *options) { o.lag = d } }

// Sharded is a sharded cluster. Clients talk to its mongoses; a sharded collection is distributed by its shard key over the shards
// behind them, which are named sh0, sh1 and so on.
func Sharded(shards, mongoses int) Option {
	return func(o *options) { o.kind, o.shards, o.mongoses = sharded, shards, mongoses }
}

// LoadBalanced is a sharded cluster whose mongoses stand behind a load balancer: hello carries a serviceId, and a client
// that does not declare loadBalanced is refused. The balancer hands new connections to the mongoses in turn; a second one has
// only the first mongos behind it (see [Deployment.SingleMongosURI]).
func LoadBalanced(mongoses int) Option {
	return func(o *options) { o.kind, o.shards, o.mongoses = loadBalanced, 1, mongoses }
}

// Version chooses the server version: "4.2" to "8.2", with or without a patch level. The default is "8.0".
func Version(v string) Option { return func(o *options) { o.version = v } }

// Versions returns the versions that Version takes, with the patch level that stands for each series, the oldest first.
func Versions() []string {
	var all []string
	for _, v := range release.Versions() {
		all = append(all, v.String())
	}
	return all
}

// Parameter sets a server parameter at the start, as --setParameter does, those included that cannot be changed later.
func Parameter(name string, value any) Option {
	return func(o *options) { o.parameters = append(o.parameters, parameter{name, value}) }
}

// Port makes the deployment listen on this port and those that follow instead of free ones. What the connection string names
// comes first: a load balancer has this port, its sibling in front of a single mongos the next one, the mongoses the others.
func Port(first int) Option { return func(o *options) { o.port = first } }

// InMemory makes the deployment listen on a network in memory instead of loopback: clients connect with
// [Deployment.DialContext]. Everything that waits does so on channels and timers, so that a deployment which is started
// inside of a testing/synctest bubble runs on the bubble's clock.
func InMemory() Option { return func(o *options) { o.inMemory = true } }

// UnixSockets makes every node listen on a socket in this folder as well: see [Node.SocketPath].
func UnixSockets(dir string) Option { return func(o *options) { o.socketDir = dir } }

// TLS makes the deployment accept TLS connections only, with certificates that it makes itself for localhost. It asks
// clients for a certificate but does not insist on one.
func TLS() Option { return func(o *options) { o.tls = true } }

// Auth switches authentication on and makes a user with the role root.
func Auth(user, password string) Option {
	return func(o *options) { o.user, o.password = user, password }
}

// IdentityProvider is one whose tokens a deployment accepts (see OIDC).
type IdentityProvider struct {
	Issuer        string
	ClientID      string   // empty: the provider is for services only
	RequestScopes []string // which a person's client asks for besides
	// Match is a regular expression for the names of the users that are this provider's. Empty: all.
	Match string
}

// OIDC switches authentication on, and accepts access tokens (mechanism MONGODB-OIDC). Whose token it is says User.AccessTokens: it can
// be any text, since nobody signs it. A client that has no token yet is told of the provider that its user name matches, or of the
// only one. It panics if Match is no regular expression.
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

// Log makes the deployment log every command. Bodies of commands that carry credentials are left out.
func Log(l *slog.Logger) Option { return func(o *options) { o.log = l } }
