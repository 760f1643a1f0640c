package bench

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// BenchmarkTasks runs every task of Allium and of the official driver, for profiles and benchstat.
func BenchmarkTasks(b *testing.B) {
	env := &Env{Files: 2}
	defer env.Close()
	tasks, err := Tasks(env, "")
	if err != nil {
		b.Skip(err)
	}
	for _, t := range tasks {
		for _, side := range []struct {
			name string
			do   func(int) error
		}{{"allium", t.Allium}, {"official", t.Official}} {
			b.Run(t.Name+"/"+side.name, func(b *testing.B) {
				if t.Before != nil {
					if err := t.Before(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				b.SetBytes(int64(t.Bytes))
				b.ResetTimer()
				if err := side.do(b.N); err != nil {
					b.Fatal(err)
				}
			})
		}
		t.done()
	}
}

// TestTasks runs every task once for each driver, so that a benchmark that fails is noticed.
func TestTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers and moves some 200 MB")
	}
	env := &Env{Files: 1}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := env.WithC(); err != nil {
		t.Logf("without the C driver: %v", err)
	}
	tasks, err := Tasks(env, "")
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	for _, task := range tasks {
		for _, do := range []func(int) error{task.Allium, task.Official} {
			if _, err := take(task.Before, do, 1, false); err != nil {
				t.Errorf("%s: %v", task.Name, err)
			}
		}
		if task.C == nil {
			task.done()
			continue
		}
		if task.Before != nil {
			if err := task.Before(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := task.C(1, false); err != nil {
			t.Errorf("%s: %v", task.Name, err)
		}
		task.done()
	}
}

// TestFloors: every task that makes exchanges has a floor, which can make them again and again.
func TestFloors(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers and moves some 200 MB")
	}
	env := &Env{Files: 1}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := env.WithFloors(); err != nil {
		t.Fatal(err)
	}
	tasks, err := Tasks(env, "")
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	for _, task := range tasks {
		group, _, _ := strings.Cut(task.Name, "/")
		if group == "bson" || group == "parallel" || group == "transport" {
			if task.Floor != nil {
				t.Errorf("%s has a floor", task.Name)
			}
			continue
		}
		floor, err := task.Floor()
		if err != nil {
			t.Errorf("%s: %v", task.Name, err)
			continue
		}
		if _, err := take(floor.Before, floor.Do, 2, false); err != nil {
			t.Errorf("%s: %v", task.Name, err)
		}
		if err := floor.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPercentiles(t *testing.T) {
	var turns []turn
	for i := range 100 {
		turns = append(turns, turn{wall: time.Duration(100 - i), cpu: time.Duration(i), allocs: uint64(i)})
	}
	u := summary(turns)
	for p, want := range map[int]time.Duration{1: 1, 10: 10, 50: 50, 99: 99, 100: 100} {
		if got := u.Percentile(p); got != want {
			t.Errorf("percentile %d is %v, want %v", p, got, want)
		}
	}
	if u.Wall != u.Percentile(50) {
		t.Errorf("median %v", u.Wall)
	}
	if one := summary(turns[:1]); one.Wall != 100 || one.Percentile(10) != 100 {
		t.Errorf("of one turn: %+v", one)
	}
}
