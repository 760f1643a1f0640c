package mongo

import "go.mongodb.org/mongo-driver/v2/mongo/options"

// A WriteModel is one write of Collection.BulkWrite.
type WriteModel interface{ writeModel() }

// InsertOneModel inserts a document.
type InsertOneModel struct {
	Document any
}

// NewInsertOneModel returns an empty InsertOneModel.
func NewInsertOneModel() *InsertOneModel { return new(InsertOneModel) }

// SetDocument says the document.
func (m *InsertOneModel) SetDocument(v any) *InsertOneModel {
	m.Document = v
	return m
}

func (*InsertOneModel) writeModel() {}

// DeleteOneModel deletes the first document that the filter matches.
type DeleteOneModel struct {
	Filter    any
	Collation *options.Collation
	Hint      any
}

// NewDeleteOneModel returns an empty DeleteOneModel.
func NewDeleteOneModel() *DeleteOneModel { return new(DeleteOneModel) }

// SetFilter says which documents are meant.
func (m *DeleteOneModel) SetFilter(v any) *DeleteOneModel {
	m.Filter = v
	return m
}

// SetCollation says how texts are compared.
func (m *DeleteOneModel) SetCollation(v *options.Collation) *DeleteOneModel {
	m.Collation = v
	return m
}

// SetHint says which index is used.
func (m *DeleteOneModel) SetHint(v any) *DeleteOneModel {
	m.Hint = v
	return m
}

func (*DeleteOneModel) writeModel() {}

// DeleteManyModel deletes all documents that the filter matches.
type DeleteManyModel struct {
	Filter    any
	Collation *options.Collation
	Hint      any
}

// NewDeleteManyModel returns an empty DeleteManyModel.
func NewDeleteManyModel() *DeleteManyModel { return new(DeleteManyModel) }

// SetFilter says which documents are meant.
func (m *DeleteManyModel) SetFilter(v any) *DeleteManyModel {
	m.Filter = v
	return m
}

// SetCollation says how texts are compared.
func (m *DeleteManyModel) SetCollation(v *options.Collation) *DeleteManyModel {
	m.Collation = v
	return m
}

// SetHint says which index is used.
func (m *DeleteManyModel) SetHint(v any) *DeleteManyModel {
	m.Hint = v
	return m
}

func (*DeleteManyModel) writeModel() {}

// ReplaceOneModel replaces the first document that the filter matches.
type ReplaceOneModel struct {
	Collation   *options.Collation
	Upsert      *bool
	Filter      any
	Replacement any
	Hint        any
	Sort        any
}

// NewReplaceOneModel returns an empty ReplaceOneModel.
func NewReplaceOneModel() *ReplaceOneModel { return new(ReplaceOneModel) }

// SetCollation says how texts are compared.
func (m *ReplaceOneModel) SetCollation(v *options.Collation) *ReplaceOneModel {
	m.Collation = v
	return m
}

// SetUpsert says whether a document is inserted if none fits.
func (m *ReplaceOneModel) SetUpsert(v bool) *ReplaceOneModel {
	m.Upsert = &v
	return m
}

// SetFilter says which documents are meant.
func (m *ReplaceOneModel) SetFilter(v any) *ReplaceOneModel {
	m.Filter = v
	return m
}

// SetReplacement says the document that takes the place.
func (m *ReplaceOneModel) SetReplacement(v any) *ReplaceOneModel {
	m.Replacement = v
	return m
}

// SetHint says which index is used.
func (m *ReplaceOneModel) SetHint(v any) *ReplaceOneModel {
	m.Hint = v
	return m
}

// SetSort says which document is the first.
func (m *ReplaceOneModel) SetSort(v any) *ReplaceOneModel {
	m.Sort = v
	return m
}

func (*ReplaceOneModel) writeModel() {}

// UpdateOneModel updates the first document that the filter matches.
type UpdateOneModel struct {
	Collation    *options.Collation
	Upsert       *bool
	Filter       any
	Update       any
	ArrayFilters []any
	Hint         any
	Sort         any
}

// NewUpdateOneModel returns an empty UpdateOneModel.
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

// SetFilter says which documents are meant.
func (m *UpdateOneModel) SetFilter(v any) *UpdateOneModel {
	m.Filter = v
	return m
}

// SetUpdate says the update, a document of operators or a pipeline.
func (m *UpdateOneModel) SetUpdate(v any) *UpdateOneModel {
	m.Update = v
	return m
}

// SetArrayFilters says which elements of arrays are updated.
func (m *UpdateOneModel) SetArrayFilters(v []any) *UpdateOneModel {
	m.ArrayFilters = v
	return m
}

// SetHint says which index is used.
func (m *UpdateOneModel) SetHint(v any) *UpdateOneModel {
	m.Hint = v
	return m
}

// SetSort says which document is the first.
func (m *UpdateOneModel) SetSort(v any) *UpdateOneModel {
	m.Sort = v
	return m
}

func (*UpdateOneModel) writeModel() {}

// UpdateManyModel updates all documents that the filter matches.
type UpdateManyModel struct {
	Collation    *options.Collation
	Upsert       *bool
	Filter       any
	Update       any
	ArrayFilters []any
	Hint         any
}

// NewUpdateManyModel returns an empty UpdateManyModel.
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

// SetFilter says which documents are meant.
func (m *UpdateManyModel) SetFilter(v any) *UpdateManyModel {
	m.Filter = v
	return m
}

// SetUpdate says the update, a document of operators or a pipeline.
func (m *UpdateManyModel) SetUpdate(v any) *UpdateManyModel {
	m.Update = v
	return m
}

// SetArrayFilters says which elements of arrays are updated.
func (m *UpdateManyModel) SetArrayFilters(v []any) *UpdateManyModel {
	m.ArrayFilters = v
	return m
}

// SetHint says which index is used.
func (m *UpdateManyModel) SetHint(v any) *UpdateManyModel {
	m.Hint = v
	return m
}

func (*UpdateManyModel) writeModel() {}
