package bench

import "testing"

// BenchmarkTasks runs every task of Allium and of the official driver, for profiles and benchstat.
func BenchmarkTasks(b *testing.B) {
	tasks, err := Tasks("")
	if err != nil {
		b.Skip(err)
	}
	for _, t := range tasks {
		for _, side := range []struct {
			name string
			do   func(int) error
		}{{"allium", t.Allium}, {"official", t.Official}} {
			b.Run(t.Name+"/"+side.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(t.Bytes))
				b.ResetTimer()
				if err := side.do(b.N); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
