package tables

import (
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/snappy"

	"prophet/cabi"
)

// groupRows is how many rows a row group has, at most: what DuckDB itself chooses, and what is held in memory.
const groupRows = 122_880

// parquetTable writes rows as a parquet file. Snappy costs little; zstd would make the export of 10^8 events miss its time.
type parquetTable[T any] struct {
	w *parquet.GenericWriter[T]
}

func newParquet[T any](w io.Writer) *parquetTable[T] {
	return &parquetTable[T]{parquet.NewGenericWriter[T](w, parquet.Compression(&snappy.Codec{}), parquet.MaxRowsPerRowGroup(groupRows),
		parquet.CreatedBy("prophet", cabi.Version, ""))}
}

func (t *parquetTable[T]) write(rows []T) error {
	_, err := t.w.Write(rows)
	return err
}

func (t *parquetTable[T]) close(about map[string]string) error {
	for k, v := range about {
		t.w.SetKeyValueMetadata(k, v)
	}
	return t.w.Close()
}
