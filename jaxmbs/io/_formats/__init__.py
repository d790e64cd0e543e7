from .base import AbstractFormat as AbstractFormat
from .csv import Csv as Csv
from .netcdf import NetCdf as NetCdf
from .npz import Npz as Npz
from .zarr import Zarr as Zarr
