# DICOM and CZI with an OpenSlide that is too old for them: the error names the format and the remedy.
microtome doctor | grep -q 'OpenSlide  *3\.' || { echo "OpenSlide is 4 or newer" >&2; exit 77; }
(head -c 128 /dev/zero && printf DICM) >slide.dcm
printf ZISRAWFILE >slide.czi
microtome info slide.dcm || microtome info slide.czi
