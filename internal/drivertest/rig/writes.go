package rig

import (
	"allium"
	"allium/bson"
	"allium/mongoerr"
)

// IndexesOf returns the indexes of the writes that failed.
func IndexesOf(errs []*mongoerr.WriteError) (list []int) {
	for _, e := range errs {
		list = append(list, e.Index)
	}
	return list
}

// SetOf is the update {$set: {key: value}}.
func SetOf(key string, value any) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: key, Value: value}}}}
}

// FieldOf is the document {key: value}.
func FieldOf(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }

// A Write is a write of a bulk write before it is known on which collection. Its documents may be
// of any type, as those of the specification Bulk API are, whose builder has the words of the
// functions that make them.
type Write func(c *allium.UntypedCollection, upsert bool) allium.WriteModel

// Of makes the model of a collection.
func (w Write) Of(c *allium.UntypedCollection) allium.WriteModel {
	return w(c, false)
}

// Writes are those of a bulk write.
type Writes []Write

// Of makes the models of a collection.
func (w Writes) Of(c *allium.UntypedCollection) []allium.WriteModel {
	models := make([]allium.WriteModel, len(w))
	for i := range w {
		models[i] = w[i].Of(c)
	}
	return models
}

// InsertOf inserts a document.
func InsertOf(doc any) Write {
	return func(c *allium.UntypedCollection, _ bool) allium.WriteModel { return c.InsertOneModel(doc) }
}

// UpdateOneOf updates one document.
func UpdateOneOf(filter, u any) Write {
	return func(c *allium.UntypedCollection, upsert bool) allium.WriteModel {
		return c.UpdateOneModel(filter, u, allium.UpdateModelOptions{Upsert: upsert})
	}
}

// UpdateOf updates many documents.
func UpdateOf(filter, u any) Write {
	return func(c *allium.UntypedCollection, upsert bool) allium.WriteModel {
		return c.UpdateManyModel(filter, u, allium.UpdateModelOptions{Upsert: upsert})
	}
}

// ReplaceOneOf replaces one document.
func ReplaceOneOf(filter, doc any) Write {
	return func(c *allium.UntypedCollection, upsert bool) allium.WriteModel {
		return c.ReplaceOneModel(filter, doc, allium.ReplaceModelOptions{Upsert: upsert})
	}
}

// RemoveOneOf deletes one document.
func RemoveOneOf(filter any) Write {
	return func(c *allium.UntypedCollection, _ bool) allium.WriteModel { return c.DeleteOneModel(filter) }
}

// RemoveOf deletes many documents.
func RemoveOf(filter any) Write {
	return func(c *allium.UntypedCollection, _ bool) allium.WriteModel { return c.DeleteManyModel(filter) }
}

// UpsertOf makes an update or a replacement upsert.
func UpsertOf(w Write) Write {
	return func(c *allium.UntypedCollection, _ bool) allium.WriteModel { return w(c, true) }
}
