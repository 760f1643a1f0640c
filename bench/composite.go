package bench

import "strings"

// Composite is a score that the specification composes of others, in megabytes per second.
type Composite struct {
	Name             string
	Allium, Official float64 // Official is 0 if that driver was not measured
	Of, Missing      int     // how many tasks it has, and how many of them were not measured
}

var (
	bsonBench = []string{"bson/flat/encode D", "bson/flat/decode D", "bson/deep/encode D", "bson/deep/decode D",
		"bson/full/encode D", "bson/full/decode D"}
	reads = []string{"single/find one by _id", "multi/find many and empty the cursor", "multi/GridFS download",
		"parallel/LDJSON multi-file export", "parallel/GridFS multi-file download"}
	writes = []string{"single/small doc insertOne", "single/large doc insertOne", "multi/small doc bulk insert",
		"multi/large doc bulk insert",
		"multi/small doc Collection BulkWrite insert", "multi/large doc Collection BulkWrite insert",
		"multi/small doc Client BulkWrite insert", "multi/large doc Client BulkWrite insert",
		"multi/small doc Client BulkWrite mixed", "multi/small doc Collection BulkWrite mixed", "multi/GridFS upload",
		"parallel/LDJSON multi-file import", "parallel/GridFS multi-file upload"}
)

// Composites returns the specification's composite scores.
func Composites(all []Measurement) []Composite {
	with := func(prefix string) (names []string) {
		for _, name := range append(append([]string(nil), reads...), writes...) {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		return names
	}
	out := []Composite{
		average("BSONBench", bsonBench, all), average("SingleBench", with("single/"), all),
		average("MultiBench", with("multi/"), all),
		average("ParallelBench", with("parallel/"), all), average("ReadBench", reads, all),
		average("WriteBench", writes, all),
	}
	r, w := out[len(out)-2], out[len(out)-1]
	return append(out, Composite{"DriverBench", (r.Allium + w.Allium) / 2, (r.Official + w.Official) / 2, r.Of + w.Of,
		r.Missing + w.Missing})
}

// average is the simple average of the scores of tasks.
func average(name string, tasks []string, all []Measurement) Composite {
	c := Composite{Name: name, Of: len(tasks), Missing: len(tasks)}
	for _, task := range tasks {
		for _, m := range all {
			if m.Task.Name == task {
				c.Allium += m.Allium.Speed(m.Task.Bytes)
				if o := m.Peers[Official]; o != nil {
					c.Official += o.Speed(m.Task.Bytes)
				}
				c.Missing--
			}
		}
	}
	if n := float64(c.Of - c.Missing); n > 0 {
		c.Allium, c.Official = c.Allium/n, c.Official/n
	}
	return c
}
