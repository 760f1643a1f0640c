package allium

// SetTransactJitter replaces the jitter of Transact's backoff until restore is called.
func SetTransactJitter(f func() float64) (restore func()) {
	old := transactJitter
	transactJitter = f
	return func() { transactJitter = old }
}
