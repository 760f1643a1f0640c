package gridfs

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLimit: a deadline ends the context once, however often it is set, also while its timer fires,
// and one that is set later gives time again.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		l := newLimit(time.Time{})
		for n := range 100 {
			past := begun.Add(-time.Second)
			for range 1 + n%4 {
				l.set(past) // the timer of the one before may have fired, and wait
			}
			synctest.Wait()
			if l.Err() == nil {
				t.Fatal("a deadline in the past does not end the context")
			}
			l.set(begun.Add(time.Hour))
			synctest.Wait()
			if l.Err() != nil {
				t.Fatal("there is an hour, and the context has ended")
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if l.Err() == nil {
			t.Error("after an hour the context has not ended")
		}
		l.set(time.Time{})
		time.Sleep(2 * time.Hour)
		if l.Err() != nil {
			t.Error("without a deadline the context has ended")
		}
	})
}
