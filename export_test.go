package allium

// SetTransactJitter replaces the jitter of Transact's backoff until restore is called.
func SetTransactJitter(f func() float64) (restore func()) {
	old := transactJitter
	transactJitter = f
	return func() { transactJitter = old }
}

// SetJitter replaces the random factor of the backoff after overload, for tests that measure it.
func SetJitter(c *Client, jitter float64) { c.exec.Jitter = func() float64 { return jitter } }
