package mongo

import (
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo/options"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
)

// A WriteModel is a write of BulkWrite. Only this package's models are ones.
type WriteModel interface {
	// model returns the model as one of version 2.
	model() v2mongo.WriteModel
}

// A InsertOneModel is an insert.
type InsertOneModel struct {
	Document any // the document
}

// NewInsertOneModel returns a model of an insert.
func NewInsertOneModel() *InsertOneModel { return new(InsertOneModel) }

// SetDocument says the document.
func (m *InsertOneModel) SetDocument(v any) *InsertOneModel {
	m.Document = v
	return m
}

func (m *InsertOneModel) model() v2mongo.WriteModel {
	return &v2mongo.InsertOneModel{Document: m.Document}
}

// A DeleteOneModel is the deletion of a document.
type DeleteOneModel struct {
	Filter    any                // which document
	Collation *options.Collation // how texts are compared
	Hint      any                // the index to use: its name or its keys
}

// NewDeleteOneModel returns a model of the deletion of a document.
func NewDeleteOneModel() *DeleteOneModel { return new(DeleteOneModel) }

// SetFilter says which document.
func (m *DeleteOneModel) SetFilter(v any) *DeleteOneModel {
	m.Filter = v
	return m
}

// SetCollation says how texts are compared.
func (m *DeleteOneModel) SetCollation(v *options.Collation) *DeleteOneModel {
	m.Collation = v
	return m
}

// SetHint says the index to use: its name or its keys.
func (m *DeleteOneModel) SetHint(v any) *DeleteOneModel {
	m.Hint = v
	return m
}

func (m *DeleteOneModel) model() v2mongo.WriteModel {
	return &v2mongo.DeleteOneModel{Filter: m.Filter, Collation: convert.Collation(m.Collation), Hint: m.Hint}
}

// A DeleteManyModel is the deletion of documents.
type DeleteManyModel struct {
	Filter    any                // which documents
	Collation *options.Collation // how texts are compared
	Hint      any                // the index to use: its name or its keys
}

// NewDeleteManyModel returns a model of the deletion of documents.
func NewDeleteManyModel() *DeleteManyModel { return new(DeleteManyModel) }

// SetFilter says which documents.
func (m *DeleteManyModel) SetFilter(v any) *DeleteManyModel {
	m.Filter = v
	return m
}

// SetCollation says how texts are compared.
func (m *DeleteManyModel) SetCollation(v *options.Collation) *DeleteManyModel {
	m.Collation = v
	return m
}

// SetHint says the index to use: its name or its keys.
func (m *DeleteManyModel) SetHint(v any) *DeleteManyModel {
	m.Hint = v
	return m
}

func (m *DeleteManyModel) model() v2mongo.WriteModel {
	return &v2mongo.DeleteManyModel{Filter: m.Filter, Collation: convert.Collation(m.Collation), Hint: m.Hint}
}

// A ReplaceOneModel is the replacement of a document.
type ReplaceOneModel struct {
	Collation   *options.Collation // how texts are compared
	Upsert      *bool              // whether the document is inserted if none fits
	Filter      any                // which document
	Replacement any                // the new document
	Hint        any                // the index to use: its name or its keys
}

// NewReplaceOneModel returns a model of the replacement of a document.
func NewReplaceOneModel() *ReplaceOneModel { return new(ReplaceOneModel) }

// SetCollation says how texts are compared.
func (m *ReplaceOneModel) SetCollation(v *options.Collation) *ReplaceOneModel {
	m.Collation = v
	return m
}

// SetUpsert says whether the document is inserted if none fits.
func (m *ReplaceOneModel) SetUpsert(v bool) *ReplaceOneModel {
	m.Upsert = &v
	return m
}

// SetFilter says which document.
func (m *ReplaceOneModel) SetFilter(v any) *ReplaceOneModel {
	m.Filter = v
	return m
}

// SetReplacement says the new document.
func (m *ReplaceOneModel) SetReplacement(v any) *ReplaceOneModel {
	m.Replacement = v
	return m
}

// SetHint says the index to use: its name or its keys.
func (m *ReplaceOneModel) SetHint(v any) *ReplaceOneModel {
	m.Hint = v
	return m
}

func (m *ReplaceOneModel) model() v2mongo.WriteModel {
	return &v2mongo.ReplaceOneModel{Collation: convert.Collation(m.Collation), Upsert: m.Upsert, Filter: m.Filter,
		Replacement: m.Replacement, Hint: m.Hint}
}

// A UpdateOneModel is the update of a document.
type UpdateOneModel struct {
	Collation    *options.Collation    // how texts are compared
	Upsert       *bool                 // whether a document is inserted if none fits
	Filter       any                   // which document
	Update       any                   // a document of operators, or a pipeline
	ArrayFilters *options.ArrayFilters // filters for the elements of arrays that the update names
	Hint         any                   // the index to use: its name or its keys
}

// NewUpdateOneModel returns a model of the update of a document.
func NewUpdateOneModel() *UpdateOneModel { return new(UpdateOneModel) }

// SetCollation says how texts are compared.
func (m *UpdateOneModel) SetCollation(v *options.Collation) *UpdateOneModel {
	m.Collation = v
	return m
}

// SetUpsert says whether a document is inserted if none fits.
func (m *UpdateOneModel) SetUpsert(v bool) *UpdateOneModel {
	m.Upsert = &v
	return m
}

// SetFilter says which document.
func (m *UpdateOneModel) SetFilter(v any) *UpdateOneModel {
	m.Filter = v
	return m
}

// SetUpdate says a document of operators, or a pipeline.
func (m *UpdateOneModel) SetUpdate(v any) *UpdateOneModel {
	m.Update = v
	return m
}

// SetArrayFilters says filters for the elements of arrays that the update names.
func (m *UpdateOneModel) SetArrayFilters(v options.ArrayFilters) *UpdateOneModel {
	m.ArrayFilters = &v
	return m
}

// SetHint says the index to use: its name or its keys.
func (m *UpdateOneModel) SetHint(v any) *UpdateOneModel {
	m.Hint = v
	return m
}

func (m *UpdateOneModel) model() v2mongo.WriteModel {
	return &v2mongo.UpdateOneModel{Collation: convert.Collation(m.Collation), Upsert: m.Upsert, Filter: m.Filter,
		Update: m.Update, ArrayFilters: convert.ArrayFilters(m.ArrayFilters), Hint: m.Hint}
}

// A UpdateManyModel is the update of documents.
type UpdateManyModel struct {
	Collation    *options.Collation    // how texts are compared
	Upsert       *bool                 // whether a document is inserted if none fits
	Filter       any                   // which documents
	Update       any                   // a document of operators, or a pipeline
	ArrayFilters *options.ArrayFilters // filters for the elements of arrays that the update names
	Hint         any                   // the index to use: its name or its keys
}

// NewUpdateManyModel returns a model of the update of documents.
func NewUpdateManyModel() *UpdateManyModel { return new(UpdateManyModel) }

// SetCollation says how texts are compared.
func (m *UpdateManyModel) SetCollation(v *options.Collation) *UpdateManyModel {
	m.Collation = v
	return m
}

// SetUpsert says whether a document is inserted if none fits.
func (m *UpdateManyModel) SetUpsert(v bool) *UpdateManyModel {
	m.Upsert = &v
	return m
}

// SetFilter says which documents.
func (m *UpdateManyModel) SetFilter(v any) *UpdateManyModel {
	m.Filter = v
	return m
}

// SetUpdate says a document of operators, or a pipeline.
func (m *UpdateManyModel) SetUpdate(v any) *UpdateManyModel {
	m.Update = v
	return m
}

// SetArrayFilters says filters for the elements of arrays that the update names.
func (m *UpdateManyModel) SetArrayFilters(v options.ArrayFilters) *UpdateManyModel {
	m.ArrayFilters = &v
	return m
}

// SetHint says the index to use: its name or its keys.
func (m *UpdateManyModel) SetHint(v any) *UpdateManyModel {
	m.Hint = v
	return m
}

func (m *UpdateManyModel) model() v2mongo.WriteModel {
	return &v2mongo.UpdateManyModel{Collation: convert.Collation(m.Collation), Upsert: m.Upsert, Filter: m.Filter,
		Update: m.Update, ArrayFilters: convert.ArrayFilters(m.ArrayFilters), Hint: m.Hint}
}
