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

// BulkModels are those of a test case of the specification Bulk API, whose builder has the words of
// the functions that make them.
type BulkModels []allium.WriteModel

// SetOf is the update {$set: {key: value}}.
func SetOf(key string, value any) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: key, Value: value}}}}
}

// FieldOf is the document {key: value}.
func FieldOf(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }

// InsertOf is the model of an insert.
func InsertOf(doc any) allium.WriteModel { return allium.InsertModel{Document: doc} }

// UpdateOneOf is the model of an update of one document.
func UpdateOneOf(filter, u any) allium.UpdateModel {
	return allium.UpdateModel{Filter: filter, Update: u}
}

// RemoveOf is the model of a delete of many documents.
func RemoveOf(filter any) allium.WriteModel { return allium.DeleteModel{Filter: filter, Many: true} }

// UpsertOf makes an update or a replacement upsert.
func UpsertOf(m allium.WriteModel) allium.WriteModel {
	switch m := m.(type) {
	case allium.UpdateModel:
		m.Upsert = true
		return m
	case allium.ReplaceModel:
		m.Upsert = true
		return m
	}
	panic("not an upsert")
}
