package catalog

import (
	"testing"

	"allium/mongotest/internal/idl/idltest"
)

func TestFeatures(t *testing.T) { idltest.CompareFeatures(t, createStruct, renameStruct) }
