package session

// Lock is a mutual exclusion lock that is waited for on a channel. A command holds its session's
// while it waits, for a write concern or for a document: in a testing/synctest bubble, time goes on
// meanwhile only if whoever wants the session, too, does not wait for a sync.Mutex.
type Lock struct {
	free chan struct{} // holds a token while nobody has the lock
}

func newLock() *Lock {
	l := &Lock{make(chan struct{}, 1)}
	l.free <- struct{}{}
	return l
}

// Lock takes the lock.
func (l *Lock) Lock() { <-l.free }

// Free returns what yields the lock: whoever receives from it has it.
func (l *Lock) Free() <-chan struct{} { return l.free }

// TryLock takes the lock if nobody has it, and reports whether it did.
func (l *Lock) TryLock() bool {
	select {
	case <-l.free:
		return true
	default:
		return false
	}
}

// Unlock gives the lock back. It panics if nobody has it.
func (l *Lock) Unlock() {
	select {
	case l.free <- struct{}{}:
	default:
		panic("session: unlock of a free lock")
	}
}
