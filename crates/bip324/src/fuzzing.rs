//! One entry a parser, for the fuzz targets and for the test that replays their corpora. Not part of the public interface.
