package field

import "allium/bson"

// Keys is an order of documents of type D, for sorts and as the keys of an index: a bson.D.
type Keys[D any] bson.D

// Asc is the ascending order by these fields, the first one first.
func Asc[D any](ps ...In[D]) Keys[D] { return keys(1, ps) }

// Desc is the descending order by these fields.
func Desc[D any](ps ...In[D]) Keys[D] { return keys(-1, ps) }

func keys[D any](v any, ps []In[D]) Keys[D] {
	k := make(Keys[D], len(ps))
	for i, p := range ps {
		k[i] = bson.E{Key: p.in(nil).name, Value: v}
	}
	return k
}

// By joins orders: documents that are equal in the first one are ordered by the next.
//
//	field.By(field.Asc(city), field.Desc(created))
func By[D any](orders ...Keys[D]) Keys[D] {
	n := 0
	for _, k := range orders {
		n += len(k)
	}
	out := make(Keys[D], 0, n)
	for _, k := range orders {
		out = append(out, k...)
	}
	return out
}

// Score is the order by how well documents match Text, the best first. The field is the one that
// Meta projects the score to.
func Score[D any](p Path[D, float64]) Keys[D] {
	return Keys[D]{{Key: p.at.name, Value: bson.D{{Key: "$meta", Value: "textScore"}}}}
}

// TextIndex are the keys of an index for Text.
func TextIndex[D any](ps ...In[D]) Keys[D] { return keys("text", ps) }

// HashedIndex is the key of an index of hashes, for equality and hashed sharding.
func HashedIndex[D, V any](p Path[D, V]) Keys[D] { return keys[D]("hashed", []In[D]{p}) }

// SphereIndex are the keys of an index for positions on the Earth.
func SphereIndex[D any](ps ...In[D]) Keys[D] { return keys("2dsphere", ps) }

// Projection says which fields of documents of type D are returned: a bson.D.
type Projection[D any] bson.D

// Include returns these fields, and the _id unless Exclude takes it out.
func Include[D any](ps ...In[D]) Projection[D] { return Projection[D](keys(1, ps)) }

// Exclude returns all fields but these.
func Exclude[D any](ps ...In[D]) Projection[D] { return Projection[D](keys(0, ps)) }

// Project joins projections.
//
//	field.Project(field.Include(city, total), field.Exclude(id))
func Project[D any](parts ...Projection[D]) Projection[D] {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out := make(Projection[D], 0, n)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// Slice returns the first n elements of an array or, if n is negative, its last ones.
func Slice[D any, S ~[]E, E any](p Path[D, S], n int) Projection[D] {
	return Projection[D]{{Key: p.at.name, Value: bson.D{{Key: "$slice", Value: n}}}}
}

// SliceFrom returns n elements of an array behind the first skip ones.
func SliceFrom[D any, S ~[]E, E any](p Path[D, S], skip, n int) Projection[D] {
	return Projection[D]{{Key: p.at.name, Value: bson.D{{Key: "$slice", Value: []int{skip, n}}}}}
}

// FirstMatch returns the first element of an array that meets all conditions, which are on Self
// where the elements are no documents.
func FirstMatch[D any, S ~[]E, E any](p Path[D, S], conditions ...Filter[E]) Projection[D] {
	return Projection[D]{{Key: p.at.name,
		Value: bson.D{{Key: "$elemMatch", Value: onElement(p.at.name, And(conditions...), false)}}}}
}

// Meta returns what the server knows of the document besides its fields, such as "textScore" or
// "searchScore", in the field p.
func Meta[D, V any](p Path[D, V], what string) Projection[D] {
	return Projection[D]{{Key: p.at.name, Value: bson.D{{Key: "$meta", Value: what}}}}
}
