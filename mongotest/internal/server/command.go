package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// Where says on which members of a replica set a command runs.
type Where int

// The places.
const (
	OnPrimary Where = iota // writes
	OptIn                  // reads: on a secondary only if the read preference allows it
	Anywhere
)

// InTxn says what a command may do in a multi-document transaction.
type InTxn int

// The possibilities.
const (
	NoTxn    InTxn = iota // refused with 263
	TxnOK                 // may run in one, may start one
	TxnLocal              // the same, but only with read concern local
	TxnLater              // may run in one, not start one
	TxnEnds               // commitTransaction and abortTransaction
)

// Command is a row of the table of commands: all that is known of a command beside its arguments.
// Which versions have it is in the table of package release.
type Command struct {
	Name      string
	Aliases   []string
	Help      string // what it says to {help: true}
	Roles     []Role // nil: all
	AdminOnly bool
	NoAuth    bool // runs before the client has authenticated; takes no part in sessions
	// UsesSession is for a command with NoAuth that nevertheless keeps its session alive since
	// version 8.1.
	UsesSession bool
	Needs       Needs // the privileges; none with NoAuth
	// Strangers reports whether clients that have not authenticated may run it in a version. It may
	// be nil.
	Strangers func(release.Version) bool
	API       API
	DataLake  bool // Atlas Data Lake has it
	Own       bool // no server's, but a deployment's that keeps snapshots (Config.Snapshots)

	Where       Where
	Txn         InTxn
	Continues   bool // works on what an earlier command has opened, whose limits hold
	Sequences   bool // takes document sequences
	OpQuery     bool // is taken as an OP_QUERY since version 5.1, too: connections may begin with it
	Timeless    bool // its filters know no $$NOW and no $$CLUSTER_TIME (seen in 8.2)
	ReadConcern bool // takes read concern levels other than local
	// CheckConcern says why a command does not go with a read concern level that it takes in
	// general. It may be nil.
	CheckConcern func(r *Request, level string) error
	Snapshot     bool // takes read concern snapshot outside of transactions (since 5.0)
	NoAfterTime  bool // takes no afterClusterTime; so do those with NoAuth
	WriteConcern bool // takes writeConcern; the dispatcher waits for it
	// Struct is what errors about the arguments that every command takes call it from version 8.1
	// on, if not by its name.
	Struct string
	// MaxTime is for commands which name maxTimeMS among their own arguments since version 5.0.
	MaxTime MaxTime
	// DefaultMaxTime reports whether the cluster parameter defaultMaxTimeMS limits a request
	// without maxTimeMS. It may be nil, for a command that it does not limit.
	DefaultMaxTime func(r *Request) bool
	// NoWriteConcern tells that this request of the command takes no writeConcern nevertheless. It
	// may be nil.
	NoWriteConcern func(r *Request) bool
	OpTime         bool // a write whose reply carries opTime and electionId, and is only ok when it is unacknowledged
	Retryable      bool // takes txnNumber outside of transactions
	Changes        bool // has updates whose kinds serverStatus counts
	Mongos         OnMongos
	// Parse checks what the server checks before fail points, authorization and the state of the
	// node.
	Parse func(r *Request) error
	// Shape returns the shape of the query that the command is; ok is false if it has none. It may
	// be nil.
	Shape func(r *Request) (shape bson.Raw, ok bool)
	// Unsettable tells that the shape is for statistics alone: there are no settings for it, and
	// the profiler does not show it.
	Unsettable bool
	// Run appends the elements of the reply to dst. The dispatcher adds ok, the times, and what an
	// error needs; what was appended before an error is dropped.
	Run func(r *Request, dst []byte) ([]byte, error)
}

// Mongod are the roles of commands that a mongos does not have.
var Mongod = []Role{Standalone, Member}

// API says in which versions of the Stable API a command is, and in which of them it is deprecated:
// by their digits.
type API struct{ In, Deprecated string }

// V1 is for commands of version 1.
var V1 = API{In: "1"}

// OnMongos is what a mongos does with a command beside running it. The functions may be nil.
type OnMongos struct {
	// Run is what a mongos runs in the place of the command's own Run.
	Run    func(r *Request, dst []byte) ([]byte, error)
	Config bool // config servers decide it, or keep its result
	// Catalog returns the collection that the command is about as a whole: all shards that have it
	// must hear of it.
	Catalog   func(r *Request) (ns string)
	Documents bool // it writes documents, which shards may roll back one by one; other changes wait for majorities
	// ShowsShards tells that its reply and its errors show what the shards have answered.
	ShowsShards bool
	WriteErrors ShardConcern
	// Reply makes of a mongod's reply that of a mongos.
	Reply func(r *Request, reply bson.Raw, dst []byte) []byte
	// Forgets returns the databases and collections about which the command changes what a mongos
	// knows: it reads them anew when it next needs them.
	Forgets func(r *Request) []string
	// Early is what a mongos before 5.0 refuses before it asks which shard has the database.
	Early func(r *Request) error
	// Missing answers as a mongos before 5.0 if the cluster does not have the database. The command
	// runs if done is false.
	Missing func(r *Request, dst []byte) (out []byte, done bool, err error)
}

// ShardConcern is how a mongos reports that a write concern failed on shards.
type ShardConcern int

// The ways.
const (
	ConcernOfFirst ShardConcern = iota // the first one's error; the command fails if it can never be satisfied
	ConcernOfAll                       // all errors in one
	ConcernAsIs                        // as the shard did
	ConcernIfSoon                      // nothing, if it can never be satisfied
)

var table = map[string]*Command{}

// Register adds a command to the table; commands do so in their file's init. It panics if the row
// does not say which privileges the command needs.
func Register(c *Command) {
	if (c.Needs.of == nil) != c.NoAuth {
		panic(c.Name + " needs privileges, or runs without a user")
	}
	for _, name := range append([]string{c.Name}, c.Aliases...) {
		if table[name] != nil {
			panic("two commands are called " + name)
		}
		table[name] = c
	}
}

// HelpText is what the command says of itself.
func (c *Command) HelpText() string {
	if c.Help == "" {
		return "no help defined"
	}
	return c.Help
}

// Commands returns all commands by name.
func Commands() []*Command {
	var list []*Command
	for _, name := range bsondoc.SortedKeys(table) {
		if c := table[name]; c.Name == name {
			list = append(list, c)
		}
	}
	return list
}

// Lookup returns the command that the node offers under this name.
func (n *Node) Lookup(name string) *Command {
	c := table[name]
	if c == nil || c.Own && n.cfg.Snapshots == nil || !n.cfg.Version.Has(release.Command, c.Name) {
		return nil
	}
	if c.Roles == nil {
		return c
	}
	for _, role := range c.Roles {
		if role == n.role {
			return c
		}
	}
	return nil
}

// inAPI reports whether the command is in a version of the Stable API, and whether it is deprecated
// there.
func (c *Command) inAPI(version string) (in, deprecated bool) {
	return version != "" && strings.Contains(c.API.In, version),
		version != "" && strings.Contains(c.API.Deprecated, version)
}

// ForgetsTarget is for commands that change the collection which they name.
func ForgetsTarget(r *Request) []string { return []string{r.Namespace()} }

// ForgetsValue is for commands whose value is the whole name of what they change.
func ForgetsValue(r *Request) []string {
	name, _ := r.Arg().StringValue()
	return []string{name}
}

// CheckTarget refuses what is no name of a collection.
func CheckTarget(r *Request) error {
	_, err := r.Collection(srverr.InvalidNamespace)
	return err
}
