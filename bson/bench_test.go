package bson_test

import (
	"fmt"
	"testing"
	"time"

	"allium/bson"
)

// benchDoc is a document as services have them: a few of each kind of field, a nested document and
// arrays.
type benchDoc struct {
	ID      bson.ObjectID `bson:"_id"`
	Name    string        `bson:"name"`
	Visits  int64         `bson:"visits"`
	Score   float64       `bson:"score"`
	Active  bool          `bson:"active"`
	Created time.Time     `bson:"created"`
	Address struct {
		Street string `bson:"street"`
		City   string `bson:"city"`
	} `bson:"address"`
	Tags   []string `bson:"tags"`
	Values []int32  `bson:"values"`
}

func newBenchDoc() *benchDoc {
	d := &benchDoc{Name: "Ada Lovelace", Visits: 1 << 40, Score: 0.75, Active: true, Created: time.UnixMilli(1_700_000_000_000).UTC(),
		Tags: []string{"a", "bc", "def"}, Values: []int32{1, 2, 3, 4, 5}}
	d.Address.Street, d.Address.City = "12 St James's Square", "London"
	return d
}

func benchForms(b *testing.B, do func(b *testing.B, data []byte, form func() any)) {
	data, err := bson.Marshal(newBenchDoc())
	if err != nil {
		b.Fatal(err)
	}
	for _, form := range []func() any{
		func() any { return new(benchDoc) }, func() any { return new(bson.D) }, func() any { return new(bson.M) }, func() any { return new(bson.Raw) },
	} {
		b.Run(fmt.Sprintf("%T", form())[1:], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			do(b, data, form)
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	benchForms(b, func(b *testing.B, data []byte, form func() any) {
		for b.Loop() {
			if err := bson.Unmarshal(data, form()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMarshalAppend(b *testing.B) {
	benchForms(b, func(b *testing.B, data []byte, form func() any) {
		v := form()
		if err := bson.Unmarshal(data, v); err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 0, 2*len(data))
		for b.Loop() {
			if _, err := bson.MarshalAppend(buf, v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUnmarshalExtJSON(b *testing.B) {
	text, err := bson.MarshalExtJSON(newBenchDoc(), true)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var d bson.D
		if err := bson.UnmarshalExtJSON(text, &d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalExtJSON(b *testing.B) {
	b.ReportAllocs()
	d := newBenchDoc()
	for b.Loop() {
		if _, err := bson.MarshalExtJSON(d, true); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnmarshalTweet is a document as an API of others hands it out: some 60 short fields,
// most of them text, three levels deep.
func BenchmarkUnmarshalTweet(b *testing.B) {
	person := func(id int64) bson.D {
		return bson.D{{Key: "id", Value: id}, {Key: "id_str", Value: fmt.Sprint(id)}, {Key: "name", Value: "Ada Lovelace"}, {Key: "screen_name", Value: "ada"},
			{Key: "location", Value: "London"}, {Key: "description", Value: "writes programs for engines that nobody has built yet, and letters about them"},
			{Key: "url", Value: nil}, {Key: "protected", Value: false}, {Key: "followers_count", Value: int32(12842)}, {Key: "friends_count", Value: int32(327)},
			{Key: "listed_count", Value: int32(64)}, {Key: "created_at", Value: "Wed May 28 06:35:23 +0000 2008"}, {Key: "favourites_count", Value: int32(1011)},
			{Key: "utc_offset", Value: int32(-18000)}, {Key: "time_zone", Value: "Eastern Time (US & Canada)"}, {Key: "geo_enabled", Value: false}, {Key: "verified", Value: false},
			{Key: "statuses_count", Value: int32(4103)}, {Key: "lang", Value: "en"}, {Key: "profile_background_color", Value: "C0DEED"},
			{Key: "profile_image_url", Value: "http://example.com/images/1180346407/normal.jpg"}, {Key: "profile_link_color", Value: "0084B4"}, {Key: "default_profile", Value: true}}
	}
	mention := bson.D{{Key: "screen_name", Value: "charles"}, {Key: "name", Value: "Charles Babbage"}, {Key: "id", Value: int64(21812)}, {Key: "id_str", Value: "21812"}, {Key: "indices", Value: bson.A{int32(3), int32(300)}}}
	data, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "text", Value: "@charles what the engine is to do is to be told with cards, as a loom is"},
		{Key: "in_reply_to_status_id", Value: int64(22012345678)}, {Key: "retweet_count", Value: nil}, {Key: "contributors", Value: nil}, {Key: "created_at", Value: "Thu Sep 02 18:11:23 +0000 2010"},
		{Key: "geo", Value: nil}, {Key: "source", Value: "web"}, {Key: "coordinates", Value: nil}, {Key: "truncated", Value: false},
		{Key: "entities", Value: bson.D{{Key: "user_mentions", Value: bson.A{mention, mention}}, {Key: "urls", Value: bson.A{}}, {Key: "hashtags", Value: bson.A{}}}},
		{Key: "retweeted", Value: false}, {Key: "place", Value: nil}, {Key: "user", Value: person(21812345)}, {Key: "favorited", Value: false}, {Key: "id", Value: int64(22812345678)}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var d bson.D
		if err := bson.Unmarshal(data, &d); err != nil {
			b.Fatal(err)
		}
	}
}
