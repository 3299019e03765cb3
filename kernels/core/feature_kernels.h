// Kernels that a build with a feature has in the place of others: they take more dtypes or ranks,
// and are those others where none of these is there. The registry names them; so does the host,
// which reads this file.
#ifndef PT_NO_FLOAT64
#define pt_aten__fft_c2c_out pt_wide_fft_c2c_out
#define pt_aten__fft_c2r_out pt_wide_fft_c2r_out
#define pt_aten__fft_r2c_out pt_wide_fft_r2c_out
#endif
#ifndef PT_NO_COMPLEX
#define pt_aten__to_copy_out pt_complex_to_copy_out
#define pt_aten_abs_out pt_complex_abs_out
#define pt_aten_add_Scalar_out pt_complex_add_Scalar_out
#define pt_aten_add_out pt_complex_add_out
#define pt_aten_bmm_out pt_complex_bmm_out
#define pt_aten_div_Scalar_out pt_complex_div_Scalar_out
#define pt_aten_div_out pt_complex_div_out
#define pt_aten_eq_Scalar_out pt_complex_eq_Scalar_out
#define pt_aten_eq_Tensor_out pt_complex_eq_Tensor_out
#define pt_aten_mean_out pt_complex_mean_out
#define pt_aten_mm_out pt_complex_mm_out
#define pt_aten_mul_Scalar_out pt_complex_mul_Scalar_out
#define pt_aten_mul_out pt_complex_mul_out
#define pt_aten_ne_Scalar_out pt_complex_ne_Scalar_out
#define pt_aten_ne_Tensor_out pt_complex_ne_Tensor_out
#define pt_aten_neg_out pt_complex_neg_out
#define pt_aten_rsub_Scalar_out pt_complex_rsub_Scalar_out
#define pt_aten_sub_Scalar_out pt_complex_sub_Scalar_out
#define pt_aten_sub_out pt_complex_sub_out
#define pt_aten_sum_IntList_out pt_complex_sum_IntList_out
#define pt_dim_order_ops__to_dim_order_copy_out pt_complex_to_dim_order_copy_out
#endif
#ifndef PT_NO_VOLUMES
#define pt_aten_convolution_out pt_volume_convolution_out
#endif
