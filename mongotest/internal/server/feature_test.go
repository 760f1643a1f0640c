package server

import (
	"testing"

	"allium/mongotest/internal/idl/idltest"
)

func TestFeatures(t *testing.T) { idltest.CompareFeatures(t, ChangeStreamStruct) }
