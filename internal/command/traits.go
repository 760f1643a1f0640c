package command

// Kind says which retry policy a command follows.
type Kind uint8

// The kinds of commands.
const (
	KindRead  Kind = iota
	KindWrite      // needs a server that takes writes
	KindRun        // a command of the user's own: read by its server selection, retried only when both policies are on
)

// Traits are what the layers above must know of a command to send it as the specifications ask. The
// zero value of a field is the common case.
type Traits struct {
	Kind Kind
	// Retryable says that the specifications let the driver try the command again after a network
	// error: reads, and writes that change at most one document per statement. A Batch decides it
	// for each message.
	Retryable bool
	// Inherits says what the command takes from the collection, the database or the client that it
	// runs on.
	Inherits Inherited
	// OpensCursor says that the reply may hold a cursor, which keeps the session and behind a load
	// balancer the connection.
	OpensCursor bool
	// WriteErrors says that a reply with ok: 1 may report errors of a write (writeErrors,
	// writeConcernError), which the caller reads. Without it, they are the operation's error.
	WriteErrors bool
	// OutputStage marks an aggregate that ends with $out or $merge: it writes, where its read
	// preference allows it on a secondary.
	OutputStage bool
	// EndsTransaction marks commitTransaction and abortTransaction, which are retried whatever
	// retryWrites says.
	EndsTransaction bool
}

// Inherited is a set of settings.
type Inherited uint8

// The settings that commands take.
const (
	ReadPreferences Inherited = 1 << iota
	ReadConcerns
	WriteConcerns

	reading = ReadPreferences | ReadConcerns
)

// Has reports whether all of the given settings are in the set.
func (i Inherited) Has(settings Inherited) bool { return i&settings == settings }

// Traits implements Command.
func (c *Find) Traits() Traits {
	return Traits{Kind: KindRead, Retryable: true, Inherits: reading, OpensCursor: !c.SingleBatch}
}

// Traits implements Command. An aggregation that lists search indexes is one of the commands about
// them: see CreateSearchIndexes.
func (c *Aggregate) Traits() Traits {
	t := Traits{Kind: KindRead, Retryable: true, Inherits: reading, OpensCursor: !c.SingleResult}
	if c.Writes {
		t.Retryable, t.OutputStage, t.Inherits = false, true, reading|WriteConcerns
	}
	if c.SearchIndexes {
		t.Inherits = ReadPreferences
	}
	return t
}

// Traits implements Command.
func (*Count) Traits() Traits { return Traits{Kind: KindRead, Retryable: true, Inherits: reading} }

// Traits implements Command.
func (*Distinct) Traits() Traits { return Traits{Kind: KindRead, Retryable: true, Inherits: reading} }

// Traits implements Command. It runs on the primary, whatever the read preference of the client is.
func (*ListDatabases) Traits() Traits { return Traits{Kind: KindRead, Retryable: true} }

// Traits implements Command. It runs on the primary, whatever the read preference of the database
// is.
func (*ListCollections) Traits() Traits {
	return Traits{Kind: KindRead, Retryable: true, OpensCursor: true}
}

// Traits implements Command. It runs on the primary, whatever the read preference of the collection
// is.
func (*ListIndexes) Traits() Traits {
	return Traits{Kind: KindRead, Retryable: true, OpensCursor: true}
}

// Traits implements Command. A getMore is not tried again: its batch would be lost.
func (*GetMore) Traits() Traits { return Traits{Kind: KindRead} }

// Traits implements Command.
func (*KillCursors) Traits() Traits { return Traits{Kind: KindRead} }

// Traits implements Command.
func (c *Insert) Traits() Traits { return statements(c) }

// Traits implements Command.
func (c *Update) Traits() Traits { return statements(c) }

// Traits implements Command.
func (c *Delete) Traits() Traits { return statements(c) }

// Traits implements Command. Its results are a cursor.
func (c *BulkWrite) Traits() Traits {
	t := statements(c)
	t.OpensCursor = true
	return t
}

// statements returns the traits of a write of many statements.
func statements(b Batch) Traits {
	return Traits{Kind: KindWrite, Retryable: b.Retryable(1), Inherits: WriteConcerns, WriteErrors: true}
}

// Traits implements Command.
func (*FindAndModify) Traits() Traits {
	return Traits{Kind: KindWrite, Retryable: true, Inherits: WriteConcerns, WriteErrors: true}
}

// Traits implements Command.
func (*CreateIndexes) Traits() Traits { return Traits{Kind: KindWrite, Inherits: WriteConcerns} }

// Traits implements Command.
func (*DropIndexes) Traits() Traits { return Traits{Kind: KindWrite, Inherits: WriteConcerns} }

// Traits implements Command.
func (*Named) Traits() Traits { return Traits{Kind: KindWrite, Inherits: WriteConcerns} }

// Traits implements Command. Commands about search indexes go to another process, which refuses
// read and write concerns (specification: Index Management).
func (*CreateSearchIndexes) Traits() Traits { return Traits{Kind: KindWrite} }

// Traits implements Command.
func (*UpdateSearchIndex) Traits() Traits { return Traits{Kind: KindWrite} }

// Traits implements Command.
func (*DropSearchIndex) Traits() Traits { return Traits{Kind: KindWrite} }

// Traits implements Command. Nothing is inherited (specification: Run Command), and any command may
// write.
func (c *Run) Traits() Traits {
	return Traits{Kind: KindRun, WriteErrors: true, OpensCursor: c.OpensCursor}
}

// Traits implements Command.
func (*EndSessions) Traits() Traits { return Traits{Kind: KindRun} }

// Traits implements Command. Its write concern is the transaction's.
func (*EndTransaction) Traits() Traits {
	return Traits{Kind: KindWrite, Retryable: true, EndsTransaction: true}
}
