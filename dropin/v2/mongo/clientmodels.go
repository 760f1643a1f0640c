package mongo

import "go.mongodb.org/mongo-driver/v2/mongo/options"

// A ClientWriteModel is one write of Client.BulkWrite.
type ClientWriteModel interface{ clientWriteModel() }

// ClientInsertOneModel inserts a document.
type ClientInsertOneModel struct {
	Document any
}

// NewClientInsertOneModel returns an empty ClientInsertOneModel.
func NewClientInsertOneModel() *ClientInsertOneModel { return new(ClientInsertOneModel) }

// SetDocument says the document.
func (m *ClientInsertOneModel) SetDocument(v any) *ClientInsertOneModel {
	m.Document = v
	return m
}

func (*ClientInsertOneModel) clientWriteModel() {}

// ClientDeleteOneModel deletes the first document that the filter matches.
type ClientDeleteOneModel struct {
	Filter    any
	Collation *options.Collation
	Hint      any
}

// NewClientDeleteOneModel returns an empty ClientDeleteOneModel.
func NewClientDeleteOneModel() *ClientDeleteOneModel { return new(ClientDeleteOneModel) }

// SetFilter says which documents are meant.
func (m *ClientDeleteOneModel) SetFilter(v any) *ClientDeleteOneModel {
	m.Filter = v
	return m
}

// SetCollation says how texts are compared.
func (m *ClientDeleteOneModel) SetCollation(v *options.Collation) *ClientDeleteOneModel {
	m.Collation = v
	return m
}

// SetHint says which index is used.
func (m *ClientDeleteOneModel) SetHint(v any) *ClientDeleteOneModel {
	m.Hint = v
	return m
}

func (*ClientDeleteOneModel) clientWriteModel() {}

// ClientDeleteManyModel deletes all documents that the filter matches.
type ClientDeleteManyModel struct {
	Filter    any
	Collation *options.Collation
	Hint      any
}

// NewClientDeleteManyModel returns an empty ClientDeleteManyModel.
func NewClientDeleteManyModel() *ClientDeleteManyModel { return new(ClientDeleteManyModel) }

// SetFilter says which documents are meant.
func (m *ClientDeleteManyModel) SetFilter(v any) *ClientDeleteManyModel {
	m.Filter = v
	return m
}

// SetCollation says how texts are compared.
func (m *ClientDeleteManyModel) SetCollation(v *options.Collation) *ClientDeleteManyModel {
	m.Collation = v
	return m
}

// SetHint says which index is used.
func (m *ClientDeleteManyModel) SetHint(v any) *ClientDeleteManyModel {
	m.Hint = v
	return m
}

func (*ClientDeleteManyModel) clientWriteModel() {}

// ClientReplaceOneModel replaces the first document that the filter matches.
type ClientReplaceOneModel struct {
	Collation   *options.Collation
	Upsert      *bool
	Filter      any
	Replacement any
	Hint        any
	Sort        any
}

// NewClientReplaceOneModel returns an empty ClientReplaceOneModel.
func NewClientReplaceOneModel() *ClientReplaceOneModel { return new(ClientReplaceOneModel) }

// SetCollation says how texts are compared.
func (m *ClientReplaceOneModel) SetCollation(v *options.Collation) *ClientReplaceOneModel {
	m.Collation = v
	return m
}

// SetUpsert says whether a document is inserted if none fits.
func (m *ClientReplaceOneModel) SetUpsert(v bool) *ClientReplaceOneModel {
	m.Upsert = &v
	return m
}

// SetFilter says which documents are meant.
func (m *ClientReplaceOneModel) SetFilter(v any) *ClientReplaceOneModel {
	m.Filter = v
	return m
}

// SetReplacement says the document that takes the place.
func (m *ClientReplaceOneModel) SetReplacement(v any) *ClientReplaceOneModel {
	m.Replacement = v
	return m
}

// SetHint says which index is used.
func (m *ClientReplaceOneModel) SetHint(v any) *ClientReplaceOneModel {
	m.Hint = v
	return m
}

// SetSort says which document is the first.
func (m *ClientReplaceOneModel) SetSort(v any) *ClientReplaceOneModel {
	m.Sort = v
	return m
}

func (*ClientReplaceOneModel) clientWriteModel() {}

// ClientUpdateOneModel updates the first document that the filter matches.
type ClientUpdateOneModel struct {
	Collation    *options.Collation
	Upsert       *bool
	Filter       any
	Update       any
	ArrayFilters []any
	Hint         any
	Sort         any
}

// NewClientUpdateOneModel returns an empty ClientUpdateOneModel.
func NewClientUpdateOneModel() *ClientUpdateOneModel { return new(ClientUpdateOneModel) }

// SetCollation says how texts are compared.
func (m *ClientUpdateOneModel) SetCollation(v *options.Collation) *ClientUpdateOneModel {
	m.Collation = v
	return m
}

// SetUpsert says whether a document is inserted if none fits.
func (m *ClientUpdateOneModel) SetUpsert(v bool) *ClientUpdateOneModel {
	m.Upsert = &v
	return m
}

// SetFilter says which documents are meant.
func (m *ClientUpdateOneModel) SetFilter(v any) *ClientUpdateOneModel {
	m.Filter = v
	return m
}

// SetUpdate says the update, a document of operators or a pipeline.
func (m *ClientUpdateOneModel) SetUpdate(v any) *ClientUpdateOneModel {
	m.Update = v
	return m
}

// SetArrayFilters says which elements of arrays are updated.
func (m *ClientUpdateOneModel) SetArrayFilters(v []any) *ClientUpdateOneModel {
	m.ArrayFilters = v
	return m
}

// SetHint says which index is used.
func (m *ClientUpdateOneModel) SetHint(v any) *ClientUpdateOneModel {
	m.Hint = v
	return m
}

// SetSort says which document is the first.
func (m *ClientUpdateOneModel) SetSort(v any) *ClientUpdateOneModel {
	m.Sort = v
	return m
}

func (*ClientUpdateOneModel) clientWriteModel() {}

// ClientUpdateManyModel updates all documents that the filter matches.
type ClientUpdateManyModel struct {
	Collation    *options.Collation
	Upsert       *bool
	Filter       any
	Update       any
	ArrayFilters []any
	Hint         any
}

// NewClientUpdateManyModel returns an empty ClientUpdateManyModel.
func NewClientUpdateManyModel() *ClientUpdateManyModel { return new(ClientUpdateManyModel) }

// SetCollation says how texts are compared.
func (m *ClientUpdateManyModel) SetCollation(v *options.Collation) *ClientUpdateManyModel {
	m.Collation = v
	return m
}

// SetUpsert says whether a document is inserted if none fits.
func (m *ClientUpdateManyModel) SetUpsert(v bool) *ClientUpdateManyModel {
	m.Upsert = &v
	return m
}

// SetFilter says which documents are meant.
func (m *ClientUpdateManyModel) SetFilter(v any) *ClientUpdateManyModel {
	m.Filter = v
	return m
}

// SetUpdate says the update, a document of operators or a pipeline.
func (m *ClientUpdateManyModel) SetUpdate(v any) *ClientUpdateManyModel {
	m.Update = v
	return m
}

// SetArrayFilters says which elements of arrays are updated.
func (m *ClientUpdateManyModel) SetArrayFilters(v []any) *ClientUpdateManyModel {
	m.ArrayFilters = v
	return m
}

// SetHint says which index is used.
func (m *ClientUpdateManyModel) SetHint(v any) *ClientUpdateManyModel {
	m.Hint = v
	return m
}

func (*ClientUpdateManyModel) clientWriteModel() {}
