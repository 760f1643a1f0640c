package server

import (
	"sync"

	"allium/bson"
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

// InTxn says how a command goes with a multi-document transaction.
type InTxn int

// The possibilities.
const (
	NoTxn   InTxn = iota // refused with 263
	TxnOK                // may run in one, may start one
	TxnEnds              // commitTransaction and abortTransaction
)

// Command is an entry of the command table.
type Command struct {
	Name    string
	Aliases []string
	// Since and Until bound the versions that have the command: from Since on, before Until. Zero: no bound.
	Since, Until Version
	Roles        []Role // nil: all
	AdminOnly    bool
	NoAuth       bool // runs before the client has authenticated
	Where        Where
	Txn          InTxn
	WriteConcern bool // takes writeConcern; the dispatcher waits for it
	OpTime       bool // the reply of a replica set member carries opTime and electionId
	Retryable    bool // takes txnNumber outside of transactions
	// Run appends the elements of the reply to dst. The dispatcher adds ok, the times, and what an error needs; what
	// was appended before an error is dropped.
	Run func(r *Request, dst []byte) ([]byte, error)
}

var table = map[string]*Command{}

// register adds a command to the table; commands do so in their file's init.
func register(c *Command) {
	for _, name := range append([]string{c.Name}, c.Aliases...) {
		if table[name] != nil {
			panic("two commands are called " + name)
		}
		table[name] = c
	}
}

// lookup returns the command that the node offers under this name.
func (n *Node) lookup(name []byte) *Command {
	c := table[string(name)]
	if c == nil {
		return nil
	}
	v := n.cfg.Version
	if !v.atLeast(c.Since) || c.Until.Major != 0 && v.atLeast(c.Until) {
		return nil
	}
	if c.Roles != nil {
		for _, role := range c.Roles {
			if role == n.role {
				return c
			}
		}
		return nil
	}
	return c
}

// dispatch runs the request and appends the reply's document to dst.
func (n *Node) dispatch(r *Request, dst []byte) (out []byte) {
	base := len(dst)
	at, dst := bson.BeginDocument(dst)
	dst, err := n.run(r, dst)
	if err != nil {
		at, dst = bson.BeginDocument(dst[:base])
		dst = n.appendError(r, dst, srverr.From(err))
	} else {
		dst = bson.AppendDouble(dst, "ok", 1)
	}
	dst = n.appendTimes(r, dst)
	return bson.EndDocument(dst, at)
}

var operations = sync.Pool{New: func() any { return &operation{done: make(chan struct{})} }}

// run checks what has to be checked before every command, in the server's order, and runs it.
func (n *Node) run(r *Request, dst []byte) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = dst, srverr.New(srverr.InternalError, "%s", n.panicked(v))
		}
	}()
	if err := r.parseArgs(); err != nil {
		return dst, err
	}
	r.Cmd = n.lookup([]byte(r.Name))
	if r.Cmd == nil {
		return dst, srverr.New(srverr.CommandNotFound, "no such command: '%s'", r.Name)
	}
	if r.Cmd.AdminOnly && r.DB != "admin" {
		return dst, srverr.New(srverr.Unauthorized, "%s may only be run against the admin database.", r.Cmd.Name)
	}
	op := operations.Get().(*operation)
	op.id = n.lastOp.Add(1)
	r.op = op
	r.Conn.begin(op)
	defer func() {
		r.Conn.end()
		if op.reason.Load() == nil {
			operations.Put(op)
		}
	}()
	return r.Cmd.Run(r, dst)
}

func (c *Conn) begin(op *operation) {
	c.mu.Lock()
	c.op = op
	c.mu.Unlock()
}

func (c *Conn) end() {
	c.mu.Lock()
	c.op = nil
	c.mu.Unlock()
}

// appendError appends the elements of a failed command's reply.
func (n *Node) appendError(r *Request, dst []byte, e *srverr.Error) []byte {
	dst = bson.AppendDouble(dst, "ok", 0)
	dst = bson.AppendString(dst, "errmsg", e.Msg)
	if e.Code != 0 {
		dst = bson.AppendInt32(dst, "code", e.Code)
		dst = bson.AppendString(dst, "codeName", n.codeName(e.Code))
	}
	for k, v := range e.Extra.All() {
		dst = bson.AppendRawValue(dst, k, v)
	}
	if len(e.Labels) > 0 {
		dst = appendStrings(dst, "errorLabels", e.Labels)
	}
	return dst
}

func (n *Node) codeName(code int32) string {
	if n.cfg.Version.AtLeast(5, 0) {
		return srverr.Name(code)
	}
	return srverr.NameBefore50(code)
}

func appendStrings(dst []byte, key string, list []string) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, s := range list {
		dst = bson.AppendStringValue(bson.AppendIndexHeader(dst, bson.TypeString, i), s)
	}
	return bson.EndDocument(dst, at)
}

// parseArgs reads the arguments that every command takes.
func (r *Request) parseArgs() error {
	first := true
	for k, v := range r.Body.All() {
		if first {
			r.Name, first = string([]byte(k)), false
		}
		switch k {
		case "$db":
			if r.legacy {
				continue
			}
			if r.dbSeen {
				return srverr.New(40413, "BSON field 'OperationSessionInfo.$db' is a duplicate field")
			}
			s, ok := v.StringValue()
			if !ok {
				return srverr.New(13111, "wrong type for field ($db) %s != string", TypeName(v.Type))
			}
			r.DB, r.dbSeen = s, true
		case "lsid":
			if v.Type == bson.TypeEmbeddedDocument {
				r.lsid = v.Value
			}
		case "txnNumber":
			r.txnNumber, r.hasTxnNumber = v.AsInt64()
		case "$clusterTime":
			r.clusterTime = v
		case "$readPreference":
			r.readPreference = v
		case "readConcern":
			if v.Type == bson.TypeEmbeddedDocument {
				r.readConcern = v.Value
			}
		case "writeConcern":
			r.writeConcern = v
		case "maxTimeMS":
			r.maxTimeMS = v
		case "comment":
			r.comment = v
		case "apiVersion":
			r.apiVersion = v
		case "apiStrict":
			r.apiStrict = v
		case "apiDeprecationErrors":
			r.apiDeprecation = v
		}
	}
	if !r.dbSeen {
		return srverr.New(40571, "OP_MSG requests require a $db argument")
	}
	return nil
}

// TypeName returns a BSON type's name as the server's messages have it: "int", "object", "bool".
func TypeName(t bson.Type) string {
	switch t {
	case bson.TypeDouble:
		return "double"
	case bson.TypeString:
		return "string"
	case bson.TypeEmbeddedDocument:
		return "object"
	case bson.TypeArray:
		return "array"
	case bson.TypeBinary:
		return "binData"
	case bson.TypeUndefined:
		return "undefined"
	case bson.TypeObjectID:
		return "objectId"
	case bson.TypeBoolean:
		return "bool"
	case bson.TypeDateTime:
		return "date"
	case bson.TypeNull:
		return "null"
	case bson.TypeRegex:
		return "regex"
	case bson.TypeDBPointer:
		return "dbPointer"
	case bson.TypeJavaScript:
		return "javascript"
	case bson.TypeSymbol:
		return "symbol"
	case bson.TypeCodeWithScope:
		return "javascriptWithScope"
	case bson.TypeInt32:
		return "int"
	case bson.TypeTimestamp:
		return "timestamp"
	case bson.TypeInt64:
		return "long"
	case bson.TypeDecimal128:
		return "decimal"
	case bson.TypeMinKey:
		return "minKey"
	case bson.TypeMaxKey:
		return "maxKey"
	case 0:
		return "missing"
	}
	return "invalid"
}
